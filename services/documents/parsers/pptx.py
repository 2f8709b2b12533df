"""Presentations: each slide is a page; shapes in groups, tables, charts' and pictures' texts, and the notes."""

from __future__ import annotations

from lxml import etree

from schemas.errors import PermanentFailure
from schemas.parsed_documents import Block, Coverage, ParsedDocument, Warning
from services.documents.bounded_zip import BoundedZip
from services.documents.clean_text import one_line
from services.documents.parse_source import ParseSource
from services.documents.parsers.office_package import A, OfficePackage, P, R, local_name

_NOT_CONTENT = {"sldNum", "dt", "ftr", "hdr", "sldImg"}


def parse(source: ParseSource) -> ParsedDocument:
    with BoundedZip(source.path, source.limits) as archive:
        package = OfficePackage(archive)
        main = next(package.related_by_type("", "officeDocument"), "ppt/presentation.xml")
        slides = _slides(package, main)
        if not slides:
            raise PermanentFailure("no_text", "the presentation has no slides")
        document = ParsedDocument(media_type=source.media_type, parser="pptx")
        without_text: list[int] = []
        for number, part in enumerate(slides, 1):
            blocks = _slide_blocks(package, part, number)
            if not blocks:
                without_text.append(number)
            if number > 1:
                document.blocks.append(Block(kind="page_break", page=number))
            document.blocks.extend(blocks)
        core = package.core_properties
    document.author, document.created, document.language = core.get("author"), core.get("created"), core.get("language")
    first = next((block.text for block in document.blocks if block.kind == "heading"), None)
    document.title = core.get("title") if core.get("title") not in {None, "PowerPoint Presentation"} else first
    document.coverage = Coverage(
        pages=len(slides), pages_with_text=len(slides) - len(without_text), pages_without_text=without_text
    )
    document.warnings += [Warning(code="page_without_text", detail="no text", page=number) for number in without_text]
    return document


def _slides(package: OfficePackage, main: str) -> list[str]:
    """Slide parts in the order of the presentation, those hidden from the show included."""
    related = package.related(main)
    order = [related.get(entry.get(f"{R}id") or "") for entry in package.xml(main).iter(f"{P}sldId")]
    return [found[1] for found in order if found is not None and found[1] in package.archive]


def _slide_blocks(package: OfficePackage, part: str, page: int) -> list[Block]:
    blocks: list[Block] = []
    tree = package.xml(part).find(f"{P}cSld/{P}spTree")
    if tree is not None:
        _shapes(tree, page, blocks)
    for name in package.related_by_type(part, "notesSlide"):
        notes = package.xml(name).find(f"{P}cSld/{P}spTree")
        if notes is not None:
            _shapes(notes, page, blocks)
    return blocks


def _shapes(tree: etree._Element, page: int, blocks: list[Block]) -> None:
    """All shapes in drawing order, groups opened, every shape apart from the next; the title goes first."""
    found: list[Block] = []
    stack = list(reversed(tree))
    while stack:
        shape = stack.pop()
        name = local_name(shape)
        if name in {"grpSp", "AlternateContent", "Choice"}:
            stack.extend(reversed(shape))
        elif name == "sp" and _placeholder(shape) not in _NOT_CONTENT:
            found.extend(_text_blocks(shape, page))
        elif name == "graphicFrame":
            found.extend(_table(table, page) for table in shape.iter(f"{A}tbl"))
        elif name == "pic":
            properties = shape.find(f"{P}nvPicPr/{P}cNvPr")
            if properties is not None and (alt := one_line(properties.get("descr") or "")):
                found.append(Block(kind="image", text=alt, page=page))
    found.sort(key=lambda block: block.kind != "heading")
    blocks.extend(block for block in found if block.text.strip() or any(map(any, block.rows)))


def _placeholder(shape: etree._Element) -> str | None:
    placeholder = shape.find(f"{P}nvSpPr/{P}nvPr/{P}ph")
    return (placeholder.get("type") or "body") if placeholder is not None else None


def _text_blocks(shape: etree._Element, page: int) -> list[Block]:
    body = shape.find(f"{P}txBody")
    if body is None:
        return []
    paragraphs = [(_paragraph_text(paragraph), paragraph) for paragraph in body.iter(f"{A}p")]
    placeholder = _placeholder(shape)
    if placeholder in {"title", "ctrTitle"}:
        text = " ".join(one_line(text) for text, _ in paragraphs).strip()
        return [Block(kind="heading", text=text, level=1, page=page)] if text else []
    kept = [(text, paragraph) for text, paragraph in paragraphs if text.strip()]
    if placeholder in {"body", "obj"} and len(kept) > 1:
        return [Block(kind="list_item", text=text, level=_level(paragraph), page=page) for text, paragraph in kept]
    return [Block(kind="paragraph", text=text, page=page) for text, _ in kept]


def _level(paragraph: etree._Element) -> int:
    properties = paragraph.find(f"{A}pPr")
    level = properties.get("lvl") if properties is not None else None
    return int(level) + 1 if level and level.isdecimal() else 1


def _paragraph_text(paragraph: etree._Element) -> str:
    nodes = paragraph.iter(f"{A}t", f"{A}br")
    return "".join("\n" if node.tag == f"{A}br" else node.text or "" for node in nodes)


def _cell_text(cell: etree._Element) -> str:
    return " ".join(one_line(_paragraph_text(paragraph)) for paragraph in cell.iter(f"{A}p")).strip()


def _table(table: etree._Element, page: int) -> Block:
    rows = [[_cell_text(cell) for cell in row.iter(f"{A}tc")] for row in table.iter(f"{A}tr")]
    properties = table.find(f"{A}tblPr")
    has_header = properties is not None and properties.get("firstRow") in {"1", "true"}
    return Block(kind="table", rows=rows, header_rows=int(has_header and len(rows) > 1), page=page)
