"""HTML tables as rows of cells. Every cell's text stands once, in the first row and column that it spans."""

from __future__ import annotations

from selectolax.lexbor import LexborNode

from schemas.parsed_documents import Block
from services.documents.clean_text import one_line

_LARGEST_SPAN = 200
_MOST_CELLS = 2_000_000
"""Of one table, empty ones included; spans that would make more are taken as 1."""


def is_layout(table: LexborNode) -> bool:
    """A table that holds tables, or headings and no header cell, or has one cell, arranges a page: it is read as text."""
    if len(table.css("table")) > 1:
        return True
    if table.css_first("h1, h2, h3, ul, ol") is not None and table.css_first("th") is None:
        return True
    return len(table.css("td, th")) <= 1


def table_block(table: LexborNode) -> list[Block]:
    """The caption, if any, and the table."""
    blocks: list[Block] = []
    caption = table.css_first("caption")
    if caption is not None and (text := one_line(caption.text(separator=" "))):
        blocks.append(Block(kind="paragraph", text=text))
    grid = _Grid()
    header_rows = 0
    for tr in table.css("tr"):
        cells = [node for node in tr.iter() if node.tag in {"td", "th"}]
        in_head = tr.parent is not None and tr.parent.tag == "thead"
        if len(grid.rows) == header_rows and cells and (in_head or all(cell.tag == "th" for cell in cells)):
            header_rows += 1
        grid.add(cells)
    if any(cell for row in grid.rows for cell in row):
        blocks.append(Block(kind="table", rows=grid.rows, header_rows=header_rows))
    return blocks


class _Grid:
    """Places cells as HTML's table model does; covered places are empty."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self._covered_until: dict[int, int] = {}  # column -> first row that a cell above no longer covers
        self._cells = 0

    def add(self, cells: list[LexborNode]) -> None:
        number = len(self.rows)
        row: list[str] = []
        for cell in cells:
            while self._covered_until.get(len(row), 0) > number and self._cells + len(row) < _MOST_CELLS:
                row.append("")
            width, height = _span(cell, "colspan"), _span(cell, "rowspan")
            if self._cells + len(row) + width > _MOST_CELLS:
                width = height = 1
            if height > 1:
                self._covered_until.update(dict.fromkeys(range(len(row), len(row) + width), number + height))
            row.extend([one_line(cell.text(separator=" ")), *[""] * (width - 1)])
        self._cells += len(row)
        self.rows.append(row)


def _span(cell: LexborNode, name: str) -> int:
    value = cell.attributes.get(name) or "1"
    return min(max(int(value), 1), _LARGEST_SPAN) if value.isdecimal() else 1
