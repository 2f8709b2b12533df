"""Lines of a PDF page in reading order: column by column, top to bottom."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c
import regex

_HYPHEN_MARKS = regex.compile(r"[\u0002\ufffe]")
_RIGHT_TO_LEFT = regex.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]")
_GUTTER_POINTS = 9.0
_MOST_COLUMNS = 3
_COLUMN_CHARACTERS = 12
_MARK = "\u00ad"


@dataclass
class Segment:
    """Text set in one go: part of a line. Points from the page's lower left corner."""

    left: float
    bottom: float
    right: float
    top: float
    text: str
    size: float


@dataclass
class Line:
    """Segments side by side. `size` is the font size of most of it."""

    left: float
    bottom: float
    right: float
    top: float
    text: str
    size: float


def page_segments(text_page: pdfium.PdfTextPage, page_size: tuple[float, float]) -> list[Segment]:
    """What pdfium sees as runs of text, those off the page left out. A hyphen at a line's end becomes U+00AD."""
    segments: list[Segment] = []
    width, height = page_size
    for number in range(text_page.count_rects()):
        left, bottom, right, top = text_page.get_rect(number)
        if right < 0 or left > width or top < 0 or bottom > height:
            continue
        text = text_page.get_text_bounded(left, bottom, right, top)
        text = _HYPHEN_MARKS.sub(_MARK, text.replace("\r", "").replace("\n", " "))
        if text.strip():
            size = _font_size(text_page, left, (bottom + top) / 2) or (top - bottom)
            segments.append(Segment(left, bottom, right, top, text, size))
    return segments


def _font_size(text_page: pdfium.PdfTextPage, x: float, y: float) -> float | None:
    index = pdfium_c.FPDFText_GetCharIndexAtPos(text_page, x + 1, y, 4, 6)
    if index < 0:
        return None
    matrix = pdfium_c.FS_MATRIX()
    size = float(pdfium_c.FPDFText_GetFontSize(text_page, index))
    if pdfium_c.FPDFText_GetMatrix(text_page, index, ctypes.byref(matrix)):
        size *= math.hypot(matrix.c, matrix.d) or 1.0
    return round(size, 1)


def in_reading_order(segments: list[Segment]) -> list[Line]:
    """Lines of the page. Stretches of rows that share a gutter are read column by column."""
    rows = _rows(segments)
    inside = (min((item.right for item in segments), default=0.0), max((item.left for item in segments), default=0.0))
    lines: list[Line] = []
    first = 0
    while first < len(rows):
        found = _columns_from(rows, first, inside)
        if found is None:
            lines.append(_line(rows[first]))
            first += 1
            continue
        last, gutter = found
        block = [segment for row in rows[first:last] for segment in row]
        lines += in_reading_order([segment for segment in block if segment.right <= gutter])
        lines += in_reading_order([segment for segment in block if segment.right > gutter])
        first = last
    return lines


def _rows(segments: list[Segment]) -> list[list[Segment]]:
    """Segments whose middles lie on each other's height, top row first."""
    rows: list[list[Segment]] = []
    for segment in sorted(segments, key=lambda item: (-(item.top + item.bottom), item.left)):
        middle = (segment.top + segment.bottom) / 2
        if rows and rows[-1][0].bottom < middle < rows[-1][0].top:
            rows[-1].append(segment)
        else:
            rows.append([segment])
    return [sorted(row, key=lambda item: item.left) for row in rows]


def _columns_from(rows: list[list[Segment]], first: int, inside: tuple[float, float]) -> tuple[int, float] | None:
    """The end of the stretch of rows from `first` that stand in columns, and where the first gutter is.

    Only gaps with something on both sides are followed: `inside` is the first right and the last left edge of all.
    """
    gaps = [(left, right) for left, right in _gaps(rows[first]) if left < inside[1] and right > inside[0]]
    last = first + 1
    while gaps and last < len(rows):
        narrower = _shared(gaps, _gaps(rows[last]))
        if not narrower:
            break
        gaps = narrower
        last += 1
    block = [segment for row in rows[first:last] for segment in row]
    edges = [(left, right) for left, right in gaps if _is_between(block, left, right)]
    if not edges or len(edges) >= _MOST_COLUMNS:
        return None
    gutter = edges[0][0]
    sides = [[item for item in block if item.right <= gutter], [item for item in block if item.right > gutter]]
    if any(len(_rows(side)) < 2 or _typical_length(side) < _COLUMN_CHARACTERS for side in sides):
        return None
    return last, gutter


def _gaps(row: list[Segment]) -> list[tuple[float, float]]:
    """The empty stretches of a row, from the left of everything to the right of everything."""
    gaps: list[tuple[float, float]] = []
    reached = -math.inf
    for segment in row:
        if segment.left - reached >= _GUTTER_POINTS:
            gaps.append((reached, segment.left))
        reached = max(reached, segment.right)
    gaps.append((reached, math.inf))
    return gaps


def _shared(one: list[tuple[float, float]], other: list[tuple[float, float]]) -> list[tuple[float, float]]:
    overlaps = [(max(a, c), min(b, d)) for a, b in one for c, d in other]
    return [(left, right) for left, right in overlaps if right - left >= _GUTTER_POINTS]


def _is_between(block: list[Segment], left: float, right: float) -> bool:
    return any(item.right <= left for item in block) and any(item.left >= right for item in block)


def _typical_length(side: list[Segment]) -> float:
    return median(sum(len(item.text) for item in row) for row in _rows(side))


def _line(row: list[Segment]) -> Line:
    right_to_left = sum(len(_RIGHT_TO_LEFT.findall(item.text)) for item in row) * 2 > sum(
        len(item.text.strip()) for item in row
    )
    ordered = row[::-1] if right_to_left else row
    text = ordered[0].text
    for before, item in pairwise(ordered):
        gap = max(item.left - before.right, before.left - item.right)
        joined = text[-1:].isspace() or item.text[:1].isspace() or gap < 0.12 * max(item.size, 1)
        text += item.text if joined else f" {item.text}"
    longest = max(row, key=lambda item: len(item.text))
    return Line(
        left=min(item.left for item in row),
        bottom=min(item.bottom for item in row),
        right=max(item.right for item in row),
        top=max(item.top for item in row),
        text=text.strip(),
        size=longest.size,
    )
