"""HTML tables as rows of cells. Every cell's text stands once, in the first row and column that it spans."""

from __future__ import annotations

from selectolax.lexbor import LexborNode

from schemas.parsed_documents import Block
from services.documents.clean_text import one_line

_LARGEST_SPAN = 200


def is_layout(table: LexborNode) -> bool:
    """A table that holds tables or headings, or has one cell, arranges a page: its content is read as text."""
    if table.css_first("table table, td h1, td h2, td h3, td p + p, td ul") is not None:
        inner = [node for node in table.css("table") if node.mem_id != table.mem_id]
        return bool(inner) or table.css_first("th") is None
    return len(table.css("td, th")) <= 1


def table_block(table: LexborNode) -> list[Block]:
    """The caption, if any, and the table."""
    blocks: list[Block] = []
    caption = table.css_first("caption")
    if caption is not None and (text := one_line(caption.text(separator=" "))):
        blocks.append(Block(kind="paragraph", text=text))
    rows: list[list[str]] = []
    header_rows = 0
    spans: dict[int, int] = {}  # column -> rows that a cell above still covers
    for tr in table.css("tr"):
        cells = [node for node in tr.iter() if node.tag in {"td", "th"}]
        in_head = tr.parent is not None and tr.parent.tag == "thead"
        if len(rows) == header_rows and cells and (in_head or all(cell.tag == "th" for cell in cells)):
            header_rows += 1
        rows.append(_row(cells, spans))
    if any(cell for row in rows for cell in row):
        blocks.append(Block(kind="table", rows=rows, header_rows=min(header_rows, len(rows))))
    return blocks


def _row(cells: list[LexborNode], spans: dict[int, int]) -> list[str]:
    row: list[str] = []
    waiting = list(cells)
    while waiting or any(column >= len(row) for column in spans):
        column = len(row)
        if column in spans:
            spans[column] -= 1
            if not spans[column]:
                del spans[column]
            row.append("")
            continue
        if not waiting:
            row.append("")
            continue
        cell = waiting.pop(0)
        width, height = _span(cell, "colspan"), _span(cell, "rowspan")
        row.extend([one_line(cell.text(separator=" ")), *[""] * (width - 1)])
        if height > 1:
            spans.update({column + offset: height - 1 for offset in range(width)})
    return row


def _span(cell: LexborNode, name: str) -> int:
    value = cell.attributes.get(name) or "1"
    return min(max(int(value), 1), _LARGEST_SPAN) if value.isdecimal() else 1
