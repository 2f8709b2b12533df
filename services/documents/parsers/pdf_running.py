"""Running headers, footers and page numbers: lines that come back at the same edge of page after page."""

from __future__ import annotations

from collections import Counter

import regex

from services.documents.parsers.pdf_lines import Line

_EDGE_LINES = 3
_MARGIN_SHARE = 0.1
"""Of the page's height, above and below: body text that repeats itself is further inside."""
_LEAST_PAGES = 3
_LEAST_SHARE = 0.4
_PLACE_POINTS = 6
_DIGITS = regex.compile(r"\d+|\b[ivxlcdm]+\b", regex.I)
_PAGE_NUMBER = regex.compile(r"[-–—\s]*(?:page|seite|p\.|第)?\s*\d{1,5}\s*(?:页|頁)?[-–—\s]*", regex.I)


def drop_running_lines(pages: list[tuple[list[Line], float]]) -> None:
    """Take them out of each page's lines, in place; the float is the page's height. Numbers in them count as equal.

    A line is one when at least three pages, and four in ten, have it at the same height; facing pages may differ.
    """
    if len(pages) < _LEAST_PAGES:
        return
    seen: Counter[tuple[str, int]] = Counter()
    for lines, height in pages:
        seen.update({key for line in _edges(lines, height) for key in _keys(line)})
    least = max(_LEAST_PAGES, _LEAST_SHARE * sum(1 for lines, _ in pages if lines))
    running = {key for key, count in seen.items() if count >= least}
    for lines, height in pages:
        dropped = {id(line) for line in _edges(lines, height) if any(key in running for key in _keys(line))}
        lines[:] = [line for line in lines if id(line) not in dropped]


def _edges(lines: list[Line], height: float) -> list[Line]:
    """The highest and the lowest lines in a page's margins, wherever reading order put them."""
    ordered = sorted(lines, key=lambda line: -line.top)
    above = [line for line in ordered[:_EDGE_LINES] if line.bottom > (1 - _MARGIN_SHARE) * height]
    below = [line for line in ordered[-_EDGE_LINES:] if line.top < _MARGIN_SHARE * height]
    return above + below


def _keys(line: Line) -> list[tuple[str, int]]:
    """Text without its numbers, and height, once for either rounding."""
    text = "#" if _PAGE_NUMBER.fullmatch(line.text) else _DIGITS.sub("#", line.text).strip().lower()
    place = int(line.bottom // _PLACE_POINTS)
    return [(text, place), (text, place + 1)]
