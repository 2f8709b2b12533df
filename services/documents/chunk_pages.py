"""Which pages and what kind of blocks a span of the canonical text covers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Literal

from schemas.parsed_documents import CanonicalDocument
from services.documents.sections import Run


class PageFinder:
    """Looks spans up in a document's blocks."""

    def __init__(self, document: CanonicalDocument) -> None:
        self._blocks = [placed for placed in document.blocks if placed.end > placed.start]
        self._starts = [placed.start for placed in self._blocks]

    def _range(self, start: int, end: int) -> tuple[int, int]:
        return max(bisect_right(self._starts, start) - 1, 0), bisect_left(self._starts, end)

    def of(self, start: int, end: int) -> tuple[int | None, int | None]:
        """First and last page, from 1; None for formats without pages."""
        first, last = self._range(start, end)
        pages = [placed.block.page for placed in self._blocks[first:last] if placed.block.page is not None]
        return (pages[0], pages[-1]) if pages else (None, None)

    def kind(self, run: Run, start: int, end: int) -> Literal["text", "table", "code"]:
        """The run's kind; a piece of a text run that is nothing but code or a table is that."""
        if run.kind != "text":
            return run.kind
        first, last = self._range(start, end)
        kinds = {placed.block.kind for placed in self._blocks[first:last]} - {"heading"}
        if kinds == {"code"}:
            return "code"
        return "table" if kinds == {"table"} else "text"
