"""Faults of tables that people reported (B32-B44)."""

from __future__ import annotations

import io

import openpyxl

from tests.unit.documents.parsing import chunks_of, parse_bytes, parse_case, text_of


def test_b32_a_merged_banner_leaves_one_table_with_each_row_once() -> None:
    tables = [block for block in parse_case("x_merged.xlsx").blocks if block.kind == "table"]
    assert [table.rows for table in tables] == [[["Section A"], ["k", "v", "w"]]]


def test_b32_six_hundred_rows_under_banners_stand_once_each() -> None:
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    row = 1
    for number in range(600):
        if number % 20 == 0:
            sheet.cell(row, 1, f"Banner {number}")
            sheet.merge_cells(start_row=row, end_row=row + 1, start_column=1, end_column=3)
            row += 2
        for column, value in enumerate((f"key{number}x", f"value{number}x", number), 1):
            sheet.cell(row, column, value)
        row += 1
    buffer = io.BytesIO()
    workbook.save(buffer)
    text = text_of(parse_bytes(buffer.getvalue(), "banners.xlsx"))
    assert [text.count(f"key{number}x") for number in range(600)] == [1] * 600


def test_b34_a_formula_nobody_calculated_shows_its_text() -> None:
    document = parse_case("x_formula_nocache.xlsx")
    assert document.blocks[1].rows == [["question", '=CONCATENATE("an","swer")']]
    assert [warning.code for warning in document.warnings] == ["formula_not_calculated"]


def test_b35_rows_below_a_blank_stretch_are_kept() -> None:
    assert len(parse_case("x_gap.xlsx").blocks[1].rows) == 400


def test_b38_cells_outside_the_grid_are_left_out_before_anything_is_sized() -> None:
    document = parse_case("x_out_of_grid.xlsx")
    assert document.blocks[1].rows == [["a"]]
    assert [warning.code for warning in document.warnings] == ["cells_outside_grid"]


def test_b40_dates_of_the_1904_system_are_right() -> None:
    assert parse_case("x_dates_1904.xlsx").blocks[1].rows == [["2025-01-21"]]


def test_b41_semicolons_outside_quotes_separate_columns() -> None:
    table = parse_case("csv_semicolon.csv").blocks[0]
    assert table.rows[0] == ["name", "region", "units"]
    assert table.rows[1][2] == "12,5"


def test_b43_a_long_table_is_cut_on_rows_and_its_header_goes_along() -> None:
    document = parse_case("table_long.md")
    chunks = chunks_of(document)
    for chunk in chunks:
        shown = f"{chunk.context or ''}\n{chunk.text}"
        assert "| sku | region | eur |\n| --- | --- | --- |\n| S" in shown
        assert all(
            line.startswith(("|", "#")) and line.endswith("|") for line in chunk.text.split("\n") if line[:1] == "|"
        )
    rows = [line for chunk in chunks for line in chunk.text.split("\n") if line.startswith("| S")]
    assert len(rows) == len(set(rows)) == 600


def test_b43_two_header_rows_both_go_along() -> None:
    rows = "".join(f"<tr><td>name {number}</td><td>{number}</td><td>{number}</td></tr>" for number in range(300))
    head = "<thead><tr><th rowspan=2>who</th><th colspan=2>eur</th></tr><tr><th>net</th><th>gross</th></tr></thead>"
    page = f"<table>{head}<tbody>{rows}</tbody></table>"
    chunks = chunks_of(parse_bytes(page.encode(), "a.html"))
    assert len(chunks) > 3
    for chunk in chunks:
        shown = f"{chunk.context or ''}\n{chunk.text}"
        assert "| who | eur |" in shown
        assert "| net | gross |" in shown


def test_b44_no_chunk_is_above_the_bound_whatever_the_table() -> None:
    cells = "".join(
        f"<tr><td>S{number:05d}</td><td>R{number % 7}</td><td>{number}</td></tr>" for number in range(30_000)
    )
    for document in (parse_bytes(f"<table>{cells}</table>".encode(), "t.html"), parse_case("x_big_cell.xlsx")):
        chunks = chunks_of(document)
        assert len(chunks) > 20
        assert max(chunk.tokens for chunk in chunks) <= 256
