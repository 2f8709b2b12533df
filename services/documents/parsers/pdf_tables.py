"""Ruled tables of PDF pages, by pdfplumber: exact, and slow, so only where there are rules."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import pdfplumber
import pdfplumber.page
import pdfplumber.pdf
import pdfplumber.table
import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from services.documents.clean_text import one_line
from services.documents.parsers.pdf_lines import Segment
from services.documents.parsers.table_header import header_row_count

_THIN_POINTS = 2.0
_LEAST_LINES = 3


@dataclass
class PlacedTable:
    """A table and its frame, in points from the page's lower left corner."""

    left: float
    bottom: float
    right: float
    top: float
    rows: list[list[str]]
    header_rows: int

    def holds(self, segment: Segment) -> bool:
        """Whether the segment's middle lies in the frame."""
        x, y = (segment.left + segment.right) / 2, (segment.bottom + segment.top) / 2
        return self.left <= x <= self.right and self.bottom <= y <= self.top


def has_rules(objects: list[pdfium.PdfObject]) -> bool:
    """Whether enough horizontal and vertical lines, or frames, are drawn for a grid."""
    horizontal = vertical = frames = 0
    for item in objects:
        if item.type != pdfium_c.FPDF_PAGEOBJ_PATH:
            continue
        try:
            left, bottom, right, top = item.get_bounds()
        except pdfium.PdfiumError:
            continue
        wide, tall = right - left > 10, top - bottom > 6
        horizontal += wide and top - bottom <= _THIN_POINTS
        vertical += tall and right - left <= _THIN_POINTS
        frames += wide and tall
    return (horizontal >= _LEAST_LINES and vertical >= 2) or frames >= 4


class RuledTables:
    """Opens the file once, at the first page that needs it. After `deadline` (process time) it finds nothing more."""

    def __init__(self, path: Path, deadline: float) -> None:
        self._path = path
        self._deadline = deadline
        self._pdf: pdfplumber.pdf.PDF | None = None
        self.skipped_pages = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pdf is not None:
            self._pdf.close()

    def find(self, index: int) -> list[PlacedTable]:
        """The page's tables of at least two rows and columns."""
        if time.process_time() > self._deadline:
            self.skipped_pages += 1
            return []
        try:
            self._pdf = self._pdf or pdfplumber.open(self._path)
            page = self._pdf.pages[index]
            found = [self._placed(page, table) for table in page.find_tables()]
            page.close()
        except Exception:
            # pdfplumber stumbles over files that pdfium reads: the page's text is still there
            self.skipped_pages += 1
            return []
        return [table for table in found if len(table.rows) > 1 and max(map(len, table.rows)) > 1]

    @staticmethod
    def _placed(page: pdfplumber.page.Page, table: pdfplumber.table.Table) -> PlacedTable:
        left, top, right, bottom = table.bbox
        rows = [[one_line(cell or "") for cell in row] for row in table.extract()]
        rows = [row for row in rows if any(row)]
        height = float(page.height)
        return PlacedTable(left, height - bottom, right, height - top, rows or [[]], header_row_count(rows))
