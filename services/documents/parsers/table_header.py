"""Which first rows of a bare grid are its header."""

from __future__ import annotations

import regex

_VALUE = regex.compile(r"[-+(]?[$€£¥]?\s?\d[\d.,:/\-\s]*[%)]?[a-zA-Z]?")
_JUDGED_ROWS = 6
_LONGEST_NAME = 120


def header_row_count(rows: list[list[str]]) -> int:
    """Rows up to and with the first that names columns: at least two cells, all text, none repeated.

    Rows before it are banners (a merged title over the columns) and belong to the header. 0 when none names columns.
    """
    if len(rows) < 2:
        return 0
    for number, row in enumerate(rows[:_JUDGED_ROWS]):
        cells = [cell.strip() for cell in row if cell.strip()]
        if len(cells) >= 2 or (number == 0 and max(len(other) for other in rows[:_JUDGED_ROWS]) == 1):
            named = all(len(cell) <= _LONGEST_NAME and not _VALUE.fullmatch(cell) for cell in cells)
            return number + 1 if named and len(set(cells)) == len(cells) and _differs(row, rows[number + 1 :]) else 0
    return 0


def _differs(row: list[str], below: list[list[str]]) -> bool:
    """A single column of words has no header that could be told from its values."""
    if len([cell for cell in row if cell.strip()]) >= 2:
        return bool(below)
    return bool(below) and all(
        _VALUE.fullmatch(other[0].strip()) for other in below[:_JUDGED_ROWS] if other and other[0]
    )
