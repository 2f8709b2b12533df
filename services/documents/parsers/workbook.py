"""Workbooks (XLSX, XLS, ODS) by python-calamine; each sheet is a table under a heading with its name.

XLSX sheets are looked through first: cells outside the grid, cells so far apart that a dense grid would fill the
memory, and formulas that nobody has calculated are what calamine cannot bound or read.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from typing import Any

import python_calamine

from schemas.errors import PermanentFailure
from schemas.parsed_documents import Block, ParsedDocument, Warning
from schemas.settings import ParsingSettings
from services.documents.bounded_zip import BoundedZip
from services.documents.bounds import bound_reached
from services.documents.parse_source import ParseSource
from services.documents.parsers.office_package import OfficePackage
from services.documents.parsers.table_header import header_row_count
from services.documents.parsers.xlsx_cells import SharedStrings, cell_rows
from services.documents.parsers.xlsx_survey import SheetSurvey, survey_sheet
from services.documents.sniff import XLSX


def parse(source: ParseSource) -> ParsedDocument:
    document = ParsedDocument(media_type=source.media_type, parser="calamine")
    if source.media_type == XLSX:
        with BoundedZip(source.path, source.limits) as archive:
            _parse_xlsx(source, OfficePackage(archive), document)
    else:
        with _open(source) as workbook:
            for name in workbook.sheet_names:
                _add_sheet(document, name, _dense_rows(workbook, name), source.limits)
    return document


def _parse_xlsx(source: ParseSource, package: OfficePackage, document: ParsedDocument) -> None:
    main = next(package.related_by_type("", "officeDocument"), "xl/workbook.xml")
    if main.endswith(".bin"):
        raise PermanentFailure("unsupported", "binary workbooks (.xlsb) are not read; save it as .xlsx")
    related = package.related(main)
    strings: SharedStrings | None = None
    relation = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
    sheets = [
        (node.get("name") or "", related.get(node.get(relation) or "", ("", ""))[1])
        for node in package.xml(main).iter("{*}sheet")
    ]
    surveys = {name: survey_sheet(package.archive.pieces(part)) for name, part in sheets if part in package.archive}
    for name, survey in surveys.items():
        if survey.outside_grid:
            detail = f"sheet {name!r} has cells outside the grid (after XFD1048576); they were left out"
            document.warnings.append(Warning(code="cells_outside_grid", detail=detail))
    plain = [name for name, survey in surveys.items() if not survey.needs_own_reading]
    workbook = _open(source) if plain else None
    for name, part in sheets:
        if name not in surveys:
            continue
        if workbook is not None and name in plain:
            rows: Iterable[list[str]] = _dense_rows(workbook, name)
        else:
            strings = strings or SharedStrings(package, main)
            rows = cell_rows(package.archive.pieces(part), strings)
        _add_sheet(document, name, rows, source.limits, surveys[name])
    document.title = package.core_properties.get("title")


def _open(source: ParseSource) -> python_calamine.CalamineWorkbook:
    try:
        return python_calamine.CalamineWorkbook.from_path(str(source.path))
    except python_calamine.PasswordError as error:
        raise PermanentFailure("encrypted", f"{source.name!r} is protected by a password") from error
    except (python_calamine.CalamineError, OSError, ValueError) as error:
        raise PermanentFailure("corrupt", f"the workbook cannot be read: {error}") from error


def _dense_rows(workbook: python_calamine.CalamineWorkbook, name: str) -> Iterator[list[str]]:
    try:
        sheet = workbook.get_sheet_by_name(name)
        for row in sheet.iter_rows():
            yield [cell_text(value) for value in row]
    except (python_calamine.CalamineError, OSError, ValueError) as error:
        raise PermanentFailure("corrupt", f"sheet {name!r} cannot be read: {error}") from error


def cell_text(value: Any) -> str:
    """What a person sees in the cell, dates as ISO 8601, whole numbers without a fraction."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.15g}"
    if isinstance(value, dt.datetime):
        midnight = value.time() == dt.time()
        return value.date().isoformat() if midnight else value.isoformat(sep=" ", timespec="seconds")
    return value.isoformat() if isinstance(value, dt.date | dt.time) else str(value)


def _add_sheet(
    document: ParsedDocument,
    name: str,
    rows: Iterable[list[str]],
    limits: ParsingSettings,
    survey: SheetSurvey | None = None,
) -> None:
    """The rows that hold anything, from anywhere in the sheet; blank stretches between them cost nothing."""
    kept: list[list[str]] = []
    characters = 0
    for row in rows:
        while row and not row[-1].strip():
            row.pop()
        if row:
            kept.append(row)
            characters += sum(map(len, row))
            if characters > limits.text_chars:
                raise bound_reached("too_large", "the workbook holds too much text", "text_chars", limits.text_chars)
    if not kept:
        return
    if survey is not None and survey.uncalculated:
        detail = f"sheet {name!r} has formulas without a stored value; their text is shown"
        document.warnings.append(Warning(code="formula_not_calculated", detail=detail))
    document.blocks.append(Block(kind="heading", text=name, level=1))
    headers = header_row_count(kept)
    document.blocks.append(Block.model_construct(kind="table", rows=kept, header_rows=headers, sheet=name))
