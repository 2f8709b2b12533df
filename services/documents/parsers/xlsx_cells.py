"""An XLSX sheet read cell by cell: costs what its cells cost, however far apart they are, and shows formulas."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator

import regex
from lxml import etree

from schemas.errors import PermanentFailure
from services.documents.parsers.office_package import OfficePackage, local_name
from services.documents.parsers.xlsx_survey import LAST_COLUMN, LAST_ROW, column_number

_REFERENCE = regex.compile(r"([A-Za-z]{1,8})(\d{1,12})")
_DATE_FORMATS = {*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)}
_DATE_LETTERS = regex.compile(r"[ymdhs]", regex.I)
_LITERALS = regex.compile(r"\"[^\"]*\"|\\.|\[[^\]]*\]")
_WIDEST_GAP = 256
"""More empty cells in a row than this are shown as this many."""


class SharedStrings:
    """The workbook's strings, date formats and date system."""

    def __init__(self, package: OfficePackage, main: str) -> None:
        self.strings: list[str] = []
        for name in package.related_by_type(main, "sharedStrings"):
            for item in package.xml(name).iter("{*}si"):
                self.strings.append(_rich_text(item))
        self.date_styles = self._date_styles(package, main)
        properties = package.xml(main).find("{*}workbookPr")
        since_1904 = properties is not None and properties.get("date1904") in {"1", "true"}
        self.epoch = dt.datetime(1904, 1, 1) if since_1904 else dt.datetime(1899, 12, 30)  # noqa: DTZ001 - a cell has no zone

    @staticmethod
    def _date_styles(package: OfficePackage, main: str) -> set[int]:
        for name in package.related_by_type(main, "styles"):
            root = package.xml(name)
            own = {
                int(node.get("numFmtId") or 0): _LITERALS.sub("", node.get("formatCode") or "")
                for node in root.iter("{*}numFmt")
            }
            formats = [int(node.get("numFmtId") or 0) for node in root.iterfind("{*}cellXfs/{*}xf")]
            dates = {number for number, code in own.items() if _DATE_LETTERS.search(code)}
            return {place for place, number in enumerate(formats) if number in _DATE_FORMATS | dates}
        return set()


def cell_rows(pieces: Iterable[bytes], shared: SharedStrings) -> Iterator[list[str]]:
    """The rows that hold cells, top to bottom; cells outside the grid are left out."""
    parser = etree.XMLPullParser(events=("end",), tag="{*}row", resolve_entities=False, no_network=True)
    number = 0
    try:
        for piece in pieces:
            parser.feed(piece)
            for _, row in parser.read_events():
                if not isinstance(row, etree._Element):
                    continue
                number = _row_number(row.get("r"), number + 1)
                if number <= LAST_ROW:
                    yield _row_cells(row, shared)
                row.clear()
    except etree.XMLSyntaxError as error:
        raise PermanentFailure("corrupt", f"a sheet is no XML: {error.msg}") from error


def _row_number(given: str | None, following: int) -> int:
    return int(given) if given and given.isdecimal() and len(given) < 13 else following


def _row_cells(row: etree._Element, shared: SharedStrings) -> list[str]:
    cells: list[str] = []
    column = 0
    for cell in row.iterfind("{*}c"):
        match = _REFERENCE.fullmatch(cell.get("r") or "")
        at = column_number(match.group(1)) if match else column + 1
        if at > LAST_COLUMN or (match and int(match.group(2)) > LAST_ROW):
            continue
        cells.extend([""] * min(max(at - column - 1, 0), _WIDEST_GAP))
        cells.append(_cell_text(cell, shared))
        column = at
    return cells


def _cell_text(cell: etree._Element, shared: SharedStrings) -> str:
    kind, value, formula = cell.get("t"), cell.findtext("{*}v"), cell.findtext("{*}f")
    if kind == "inlineStr":
        inline = cell.find("{*}is")
        return _rich_text(inline) if inline is not None else ""
    if value is None or value == "":
        return f"={formula}" if formula else ""
    if kind == "s":
        place = int(value) if value.isdecimal() else -1
        return shared.strings[place] if 0 <= place < len(shared.strings) else ""
    if kind == "b":
        return "TRUE" if value == "1" else "FALSE"
    if kind in {"str", "e", "d"}:
        return value
    return _number_text(value, int(cell.get("s") or 0) in shared.date_styles, shared.epoch)


def _number_text(value: str, is_date: bool, epoch: dt.datetime) -> str:
    try:
        number = float(value)
        if is_date:
            moment = epoch + dt.timedelta(seconds=round(number * 86_400))
            return moment.date().isoformat() if number.is_integer() else moment.isoformat(sep=" ")
        return str(int(number)) if number.is_integer() and abs(number) < 1e15 else f"{number:.15g}"
    except (ValueError, OverflowError):
        return value


def _rich_text(item: etree._Element) -> str:
    """All runs of the string; phonetic readings are no part of it."""
    parts: list[str] = []
    for child in item:
        if local_name(child) == "t":
            parts.append(child.text or "")
        elif local_name(child) == "r":
            parts.append(child.findtext("{*}t") or "")
    return "".join(parts)
