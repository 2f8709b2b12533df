"""Word documents: a walk over the XML that takes what is there, whatever wrote it.

Headers and footers stand once, at the start and the end; text boxes stand where they are anchored; tracked deletions
and hidden text are left out, tracked insertions are in.
"""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from schemas.errors import PermanentFailure
from schemas.parsed_documents import Block, ParsedDocument, Warning
from services.documents.bounded_zip import BoundedZip
from services.documents.clean_text import one_line
from services.documents.parse_source import ParseSource
from services.documents.parsers.docx_runs import boxes, paragraph_text
from services.documents.parsers.docx_styles import Styles
from services.documents.parsers.office_package import OfficePackage, W

_CONTAINERS = {f"{W}{name}" for name in ("sdt", "sdtContent", "smartTag", "customXml", "ins", "moveTo")}


def parse(source: ParseSource) -> ParsedDocument:
    with BoundedZip(source.path, source.limits) as archive:
        package = OfficePackage(archive)
        main = next(package.related_by_type("", "officeDocument"), "word/document.xml")
        body = package.xml(main).find(f"{W}body")
        if body is None:
            raise PermanentFailure("corrupt", "the document has no body")
        walk = _Walk(Styles(package, main))
        walk.once([package.xml(name) for name in package.related_by_type(main, "header")])
        walk.container(body)
        for kind in ("footnotes", "endnotes"):
            for name in package.related_by_type(main, kind):
                walk.notes(package.xml(name))
        walk.once([package.xml(name) for name in package.related_by_type(main, "footer")])
        core = package.core_properties
    document = ParsedDocument(media_type=source.media_type, parser="docx", blocks=walk.blocks)
    document.title = core.get("title") or walk.title
    document.author, document.created = core.get("author"), core.get("created")
    document.language = core.get("language")
    if walk.hidden:
        detail = f"{walk.hidden} hidden passages were left out"
        document.warnings.append(Warning(code="hidden_text", detail=detail))
    return document


class _Walk:
    def __init__(self, styles: Styles) -> None:
        self.blocks: list[Block] = []
        self.title: str | None = None
        self.hidden = 0
        self._styles = styles
        self._seen: set[str] = set()

    def once(self, parts: list[etree._Element]) -> None:
        """Headers and footers: each different text once, page numbers never."""
        for part in parts:
            for paragraph in part.iter(f"{W}p"):
                text, _ = paragraph_text(paragraph)
                if text.strip() and not text.strip().isdigit() and text not in self._seen:
                    self._seen.add(text)
                    self.blocks.append(Block(kind="paragraph", text=text))

    def notes(self, part: etree._Element) -> None:
        for note in part:
            if note.get(f"{W}type") in {"separator", "continuationSeparator", "continuationNotice"}:
                continue
            text = " ".join(paragraph_text(paragraph)[0].strip() for paragraph in note.iter(f"{W}p")).strip()
            if text:
                self.blocks.append(Block(kind="footnote", text=f"[{note.get(f'{W}id')}] {text}"))

    def container(self, parent: etree._Element) -> None:
        for child in parent:
            if child.tag == f"{W}p":
                self.paragraph(child)
            elif child.tag == f"{W}tbl":
                self.table(child)
            elif child.tag in _CONTAINERS:
                self.container(child)

    def paragraph(self, paragraph: etree._Element) -> None:
        text, hidden = paragraph_text(paragraph)
        self.hidden += hidden
        style = self._styles.of(paragraph)
        if text.strip():
            if style.title and self.title is None:
                self.title = one_line(text)
            if style.heading:
                self.blocks.append(Block(kind="heading", text=text, level=style.heading))
            elif style.list_level:
                self.blocks.append(Block(kind="list_item", text=text, level=style.list_level))
            elif style.quote:
                self.blocks.append(Block(kind="quote", text=text))
            else:
                self.blocks.append(Block(kind="paragraph", text=text))
        for box in boxes(paragraph):
            self.container(box)

    def table(self, table: etree._Element) -> None:
        """Cells as they stand in the XML: a cell that continues one above is empty, grid arithmetic is not needed."""
        rows: list[list[str]] = []
        headers = 0
        for row in _rows(table):
            before = row.find(f"{W}trPr/{W}gridBefore")
            cells = [""] * _number(before)
            for cell in _cells(row):
                cells.append(self._cell_text(cell))
                cells.extend([""] * (_number(cell.find(f"{W}tcPr/{W}gridSpan")) - 1))
            if row.find(f"{W}trPr/{W}tblHeader") is not None and headers == len(rows):
                headers += 1
            rows.append(cells)
        if len(rows) == 1 and len(rows[0]) == 1:
            self.blocks.append(Block(kind="paragraph", text=rows[0][0]))  # a frame around a text
        elif any(cell for cells in rows for cell in cells):
            if not headers and len(rows) > 1 and all(rows[0]) and len(rows[0]) > 1:
                headers = 1
            self.blocks.append(Block(kind="table", rows=rows, header_rows=headers))

    def _cell_text(self, cell: etree._Element) -> str:
        """All text of the cell, of tables and boxes inside it too."""
        texts: list[str] = []
        for paragraph in cell.iter(f"{W}p"):
            text, hidden = paragraph_text(paragraph)
            self.hidden += hidden
            texts.append(text.strip())
        return " ".join(text for text in texts if text)


def _rows(table: etree._Element) -> Iterator[etree._Element]:
    for child in table:
        if child.tag == f"{W}tr":
            yield child
        elif child.tag in _CONTAINERS:
            yield from _rows(child)


def _cells(row: etree._Element) -> Iterator[etree._Element]:
    for child in row:
        if child.tag == f"{W}tc":
            yield child
        elif child.tag in _CONTAINERS:
            yield from _cells(child)


def _number(element: etree._Element | None) -> int:
    value = element.get(f"{W}val") if element is not None else None
    return min(int(value), 100) if value and value.isdecimal() else 0
