"""A look through a sheet's XML before anything is sized by what it says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import regex

LAST_ROW = 1_048_576
LAST_COLUMN = 16_384
"""XFD. The grid of ECMA-376 workbooks."""
_DENSE_CELLS = 20_000_000
"""A dense grid above this is read cell by cell instead."""

_CELL = regex.compile(rb"<(?:\w+:)?c\s[^>]{0,200}?\br=\"([A-Za-z]{1,8})(\d{1,12})\"")
_UNCALCULATED = regex.compile(
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
    columns: dict[bytes, int] = {}
    tail = b""
    for piece in pieces:
        window = tail + piece
        for match in _CELL.finditer(window):
            letters = match.group(1)
            column = columns.get(letters)
            if column is None:
                column = columns[letters] = column_number(letters.decode("ascii"))
            _widen(survey, int(match.group(2)), column)
        survey.uncalculated = survey.uncalculated or _UNCALCULATED.search(window) is not None
        tail = window[-_OVERLAP:]
    return survey


def _widen(survey: SheetSurvey, row: int, column: int) -> None:
    if not (1 <= row <= LAST_ROW and 1 <= column <= LAST_COLUMN):
        survey.outside_grid = True
        return
    survey.first_row, survey.last_row = min(survey.first_row, row), max(survey.last_row, row)
    survey.first_column, survey.last_column = min(survey.first_column, column), max(survey.last_column, column)
