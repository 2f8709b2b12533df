"""PDF by pdfium: text in reading order, page by page; pdfplumber only for pages with ruled tables."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from schemas.errors import PermanentFailure
from schemas.parsed_documents import Block, Coverage, ParsedDocument, Warning
from services.documents.bounds import bound_reached
from services.documents.clean_text import one_line
from services.documents.parse_source import ParseSource
from services.documents.parsers.pdf_garbled import is_garbled
from services.documents.parsers.pdf_hidden import remove_hidden_text
from services.documents.parsers.pdf_lines import Line, in_reading_order, page_segments
from services.documents.parsers.pdf_paragraphs import page_blocks, typical_size
from services.documents.parsers.pdf_running import drop_running_lines
from services.documents.parsers.pdf_tables import PlacedTable, RuledTables, has_rules
from services.documents.parsers.rtl_order import restore_logical_order

_TABLE_CPU_SHARE = 0.4
"""Of the CPU bound; tables on pages after that are read as text."""


@dataclass
class PageContent:
    """What one page gave; `number` counts from 1."""

    number: int
    height: float = 0.0
    lines: list[Line] = field(default_factory=list)
    tables: list[PlacedTable] = field(default_factory=list)
    garbled: bool = False


def parse(source: ParseSource) -> ParsedDocument:
    document = ParsedDocument(media_type=source.media_type, parser="pdfium")
    pdf = _open(source)
    try:
        pages = _read_pages(pdf, source, document)
        metadata = pdf.get_metadata_dict(skip_empty=True)
    finally:
        pdf.close()
    texts = restore_logical_order([line.text for page in pages for line in page.lines])
    for line, text in zip((line for page in pages for line in page.lines), texts, strict=True):
        line.text = text
    drop_running_lines([(page.lines, page.height) for page in pages])
    body_size = typical_size([line for page in pages for line in page.lines])
    for page in pages:
        if page.number > 1:
            document.blocks.append(Block(kind="page_break", page=page.number))
        _append_page(document.blocks, page_blocks(page.lines, page.tables, page.number, body_size))
    document.title = one_line(metadata.get("Title", "")) or None
    document.author = one_line(metadata.get("Author", "")) or None
    document.created = _date(metadata.get("CreationDate", ""))
    return document


def _open(source: ParseSource) -> pdfium.PdfDocument:
    try:
        return pdfium.PdfDocument(source.path)
    except pdfium.PdfiumError as error:
        if getattr(error, "err_code", None) == pdfium_c.FPDF_ERR_PASSWORD:
            raise PermanentFailure("encrypted", f"{source.name!r} needs a password") from error
        raise PermanentFailure("corrupt", f"{source.name!r} is a damaged PDF: {error}") from error


def _read_pages(pdf: pdfium.PdfDocument, source: ParseSource, document: ParsedDocument) -> list[PageContent]:
    """Every page, with the document's coverage and warnings filled in."""
    pages: list[PageContent] = []
    ruled = RuledTables(source.path, time.process_time() + source.limits.cpu_s * _TABLE_CPU_SHARE)
    characters = 0
    hidden: list[int] = []
    without_text: list[int] = []
    with ruled:
        for index in range(len(pdf)):
            content = PageContent(index + 1)
            pages.append(content)
            try:
                hidden_count = _read_page(pdf, index, content, ruled)
            except pdfium.PdfiumError:
                document.warnings.append(Warning(code="page_damaged", detail="the page cannot be read", page=index + 1))
                hidden_count = 0
            hidden += [index + 1] * (hidden_count > 0)
            characters += sum(len(line.text) for line in content.lines)
            if characters > source.limits.text_chars:
                raise bound_reached("too_large", "the PDF holds too much text", "text_chars", source.limits.text_chars)
            if not content.lines and not content.tables:
                without_text.append(index + 1)
    document.coverage = Coverage(
        pages=len(pages), pages_with_text=len(pages) - len(without_text), pages_without_text=without_text
    )
    garbled = {page.number for page in pages if page.garbled}
    for number in without_text:
        code, detail = (
            ("garbled_text", "the font's letters cannot be told")
            if number in garbled
            else ("page_without_text", "no text")
        )
        document.warnings.append(Warning(code=code, detail=detail, page=number))
    document.warnings += [
        Warning(code="hidden_text", detail="text nobody can see was left out", page=number) for number in hidden
    ]
    if ruled.skipped_pages:
        detail = f"tables on {ruled.skipped_pages} pages were read as text to stay within the time"
        document.warnings.append(Warning(code="tables_as_text", detail=detail))
    return pages


def _read_page(pdf: pdfium.PdfDocument, index: int, content: PageContent, ruled: RuledTables) -> int:
    """Fill `content`; the number of hidden text objects that were left out."""
    page = pdf[index]
    try:
        content.height = page.get_size()[1]
        objects = list(page.get_objects(max_depth=1))
        hidden = remove_hidden_text(page, objects)
        text_page = page.get_textpage()
        try:
            segments = page_segments(text_page, page.get_size())
        finally:
            text_page.close()
        if is_garbled("\n".join(segment.text for segment in segments)):
            content.garbled = True
            return hidden
        if segments and has_rules(objects):
            content.tables = ruled.find(index)
            segments = [segment for segment in segments if not any(table.holds(segment) for table in content.tables)]
        content.lines = in_reading_order(segments)
        return hidden
    finally:
        page.close()


def _append_page(blocks: list[Block], page: list[Block]) -> None:
    """Add a page's blocks; a sentence that the page break cut in two is joined again, on the page it began on."""
    previous = next((block for block in reversed(blocks) if block.kind != "page_break"), None)
    if page and previous is not None and previous.kind == page[0].kind == "paragraph":
        first, second = previous.text, page[0].text
        if first and second and first[-1] not in ".!?:;。！？：；”\"')" and second[0].islower():
            glue = "" if first.endswith("-") else " "
            previous.text = first.removesuffix("-") + glue + second
            page = page[1:]
    blocks.extend(page)


def _date(value: str) -> str | None:
    """ISO 8601 of a PDF date, D:YYYYMMDDHHmmSS."""
    digits = value.removeprefix("D:")[:14]
    if len(digits) < 8 or not digits.isdecimal():
        return None
    date = f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}"
    return f"{date}T{digits[8:10]}:{digits[10:12]}:{digits[12:14]}" if len(digits) == 14 else date
