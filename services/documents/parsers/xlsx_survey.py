"""A look through a sheet's XML before anything is sized by what it says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

LAST_ROW = 1_048_576
LAST_COLUMN = 16_384
"""XFD. The grid of ECMA-376 workbooks."""
_DENSE_CELLS = 20_000_000
"""A dense grid above this is read cell by cell instead."""

_CELL = re.compile(rb"<(?:\w+:)?c\s[^>]{0,200}?\br=\"([A-Za-z]{1,8})(\d{1,12})\"")
_UNCALCULATED = re.compile(
    rb"</(?:\w+:)?f>\s*</(?:\w+:)?c>|<(?:\w+:)?f/>\s*</|<(?:\w+:)?f\s[^>]*/>\s*</|</(?:\w+:)?f>\s*<(?:\w+:)?v\s*(?:/>|></)"
)
_OVERLAP = 400


@dataclass
class SheetSurvey:
    """The sheet's extent (from 1) and what is unusual in it."""

    first_row: int = LAST_ROW
    last_row: int = 0
    first_column: int = LAST_COLUMN
    last_column: int = 0
    outside_grid: bool = False
    uncalculated: bool = False

    @property
    def needs_own_reading(self) -> bool:
        rows = max(self.last_row - self.first_row + 1, 0)
        columns = max(self.last_column - self.first_column + 1, 0)
        return self.outside_grid or self.uncalculated or rows * columns > _DENSE_CELLS


def column_number(letters: str) -> int:
    """A is 1, XFD is 16,384."""
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - 64
    return number


def survey_sheet(pieces: Iterable[bytes]) -> SheetSurvey:
    """One pass over the sheet's bytes, in pieces, with a few hundred bytes of each seen twice."""
    survey = SheetSurvey()
    tail = b""
    for piece in pieces:
        window = tail + piece
        cells: list[tuple[bytes, bytes]] = _CELL.findall(window)
        for letters in {letters for letters, _ in cells}:
            _widen_columns(survey, column_number(letters.decode("ascii")))
        for row in {row for _, row in cells}:
            _widen_rows(survey, int(row))
        if not survey.uncalculated and (b"f>" in window or b"f/>" in window):
            survey.uncalculated = _UNCALCULATED.search(window) is not None
        tail = window[-_OVERLAP:]
    return survey


def _widen_columns(survey: SheetSurvey, column: int) -> None:
    if 1 <= column <= LAST_COLUMN:
        survey.first_column, survey.last_column = min(survey.first_column, column), max(survey.last_column, column)
    else:
        survey.outside_grid = True


def _widen_rows(survey: SheetSurvey, row: int) -> None:
    if 1 <= row <= LAST_ROW:
        survey.first_row, survey.last_row = min(survey.first_row, row), max(survey.last_row, row)
    else:
        survey.outside_grid = True
