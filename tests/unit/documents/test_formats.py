"""What each format gives, from files made here by the libraries that people make them with."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from email.message import EmailMessage

import docx
import openpyxl
import pptx
import pytest
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import SimpleDocTemplate, Table

from schemas.errors import PermanentFailure
from schemas.parsed_documents import Block
from schemas.settings import ParsingSettings
from tests.unit.documents.parsing import chunks_of, parse_bytes, text_of


def _saved(save: Callable[[io.BytesIO], object]) -> bytes:
    buffer = io.BytesIO()
    save(buffer)
    return buffer.getvalue()


def _kinds(blocks: list[Block]) -> list[tuple[str, int, str]]:
    return [(block.kind, block.level, block.text) for block in blocks]


def test_a_word_document_gives_headings_lists_tables_headers_and_footers_in_order() -> None:
    document = docx.Document()
    document.core_properties.title = "Handbook"
    document.add_heading("Travel", level=1)
    document.add_paragraph("Book early.")
    document.add_paragraph("By train", style="List Bullet")
    table = document.add_table(rows=2, cols=2)
    for cell, text in zip(
        (cell for row in table.rows for cell in row.cells), ["city", "limit", "Bonn", "90"], strict=True
    ):
        cell.text = text
    document.add_paragraph("After the table.")
    document.sections[0].header.paragraphs[0].text = "ACME LETTERHEAD"
    document.sections[0].footer.paragraphs[0].text = "REF-7781"
    parsed = parse_bytes(_saved(document.save), "handbook.bin")
    assert parsed.title == "Handbook"
    assert _kinds(parsed.blocks) == [
        ("paragraph", 0, "ACME LETTERHEAD"),
        ("heading", 1, "Travel"),
        ("paragraph", 0, "Book early."),
        ("list_item", 1, "By train"),
        ("table", 0, ""),
        ("paragraph", 0, "After the table."),
        ("paragraph", 0, "REF-7781"),
    ]
    assert parsed.blocks[4].rows == [["city", "limit"], ["Bonn", "90"]]


def test_merged_cells_of_a_word_table_stand_once() -> None:
    document = docx.Document()
    table = document.add_table(rows=2, cols=3)
    table.cell(0, 0).merge(table.cell(0, 2)).text = "banner"
    table.cell(1, 1).text = "middle"
    text = text_of(parse_bytes(_saved(document.save), "a.docx"))
    assert text.count("banner") == 1
    assert "|  | middle |" in text


def test_slides_are_pages_and_titles_are_headings() -> None:
    deck = pptx.Presentation()
    for number in (1, 2):
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = f"Title {number}"
        slide.placeholders[1].text = f"First {number}\nSecond {number}"
    deck.slides.add_slide(deck.slide_layouts[6])
    parsed = parse_bytes(_saved(deck.save), "deck.pptx")
    assert [(block.kind, block.page) for block in parsed.blocks][:4] == [
        ("heading", 1),
        ("list_item", 1),
        ("list_item", 1),
        ("page_break", 2),
    ]
    assert parsed.coverage.pages_without_text == [3]
    assert [(chunk.page_start, chunk.heading_path) for chunk in chunks_of(parsed)] == [
        (1, ["Title 1"]),
        (2, ["Title 2"]),
    ]


def test_each_sheet_is_a_table_with_a_summary_that_is_never_cited() -> None:
    workbook = openpyxl.Workbook()
    workbook.active.title = "Prices"
    workbook.active.append(["sku", "eur"])
    for number in range(400):
        workbook.active.append([f"S{number:04d}", number * 1.5])
    workbook.create_sheet("Notes").append(["only a note"])
    parsed = parse_bytes(_saved(workbook.save), "book.xlsx")
    assert [block.sheet for block in parsed.blocks if block.kind == "table"] == ["Prices", "Notes"]
    chunks = chunks_of(parsed)
    summaries = [chunk for chunk in chunks if chunk.kind == "summary"]
    assert [chunk.heading_path for chunk in summaries] == [["Prices"], ["Notes"]]
    assert all(chunk.start is None and chunk.end is None for chunk in summaries)
    assert "400 rows, 2 columns" in summaries[0].text
    assert "eur: numbers from 0 to 598.5" in summaries[0].text
    rows = [chunk for chunk in chunks if chunk.kind == "table" and chunk.heading_path == ["Prices"]]
    assert all("| sku | eur |" in f"{chunk.context}\n{chunk.text}" for chunk in rows)


def test_a_sheet_with_cells_in_its_far_corners_costs_what_its_cells_cost() -> None:
    workbook = openpyxl.Workbook()
    workbook.active["A1"] = "first"
    workbook.active["XFD1048576"] = "last"
    parsed = parse_bytes(_saved(workbook.save), "corners.xlsx")
    assert [[cell for cell in row if cell] for row in parsed.blocks[1].rows] == [["first"], ["last"]]


def test_pages_of_a_pdf_are_known_to_its_chunks_and_ruled_tables_are_tables() -> None:
    buffer = io.BytesIO()
    rows = [["sku", "eur"], ["A1", "5"], ["A2", "7"]]
    SimpleDocTemplate(buffer, pagesize=A4).build([Table(rows, style=[("GRID", (0, 0), (-1, -1), 1, colors.black)])])
    (table,) = [block for block in parse_bytes(buffer.getvalue(), "t.pdf").blocks if block.kind == "table"]
    assert table.rows == rows
    assert table.page == 1


def test_a_sentence_cut_by_a_page_break_and_a_hyphen_is_whole_again() -> None:
    def draw(buffer: io.BytesIO) -> None:
        canvas = Canvas(buffer, pagesize=A4)
        canvas.drawString(72, 700, "The committee agreed on the exam-")
        canvas.drawString(72, 686, "ination of all budgets that were")
        canvas.showPage()
        canvas.drawString(72, 700, "open at the end of the year.")
        canvas.showPage()
        canvas.save()

    text = text_of(parse_bytes(_saved(draw), "a.pdf"))
    assert text == "The committee agreed on the examination of all budgets that were open at the end of the year."


def test_a_page_whose_main_part_is_almost_empty_is_read_whole() -> None:
    words = "All that this page says stands in the wrong element. " * 20
    page = f"<html><body><main><p>Hi</p></main><div>{words}</div></body></html>"
    assert "wrong element" in text_of(parse_bytes(page.encode(), "a.html"))


def test_html_structure_becomes_blocks() -> None:
    page = (
        "<title>T</title><h2>Rules</h2><p>One <b>bold</b><br>line</p><ol><li>first<ul><li>inner</li></ul></li>"
        "<li>second</li></ol><pre><code class='language-sql'>SELECT  1</code></pre><blockquote>said</blockquote>"
        "<table><tr><th>a<th>b<tr><td rowspan=2>x<td>1<tr><td>2</table>"
    )
    parsed = parse_bytes(page.encode(), "a.html")
    assert _kinds(parsed.blocks)[:7] == [
        ("heading", 2, "Rules"),
        ("paragraph", 0, "One bold\nline"),
        ("list_item", 1, "1. first"),
        ("list_item", 2, "inner"),
        ("list_item", 1, "2. second"),
        ("code", 0, "SELECT  1"),
        ("quote", 0, "said"),
    ]
    assert parsed.blocks[5].language == "sql"
    assert parsed.blocks[7].rows == [["a", "b"], ["x", "1"], ["", "2"]]


def test_markdown_structure_becomes_blocks() -> None:
    text = "---\ntitle: Named\n---\n# One\n\nA [link](http://x.y) and *stress* and $a*b*c$.\n\n1. first\n2. second\n\n> quote\n"
    parsed = parse_bytes(text.encode(), "a.md")
    assert parsed.title == "Named"
    assert _kinds(parsed.blocks) == [
        ("heading", 1, "One"),
        ("paragraph", 0, "A [link](http://x.y) and *stress* and $a*b*c$."),
        ("list_item", 1, "1. first"),
        ("list_item", 1, "2. second"),
        ("quote", 0, "quote"),
    ]


def test_records_in_json_are_a_table_and_other_values_are_paths() -> None:
    assert parse_bytes(b'{"a":1,"b":"x"}\n{"a":2}\n', "a.jsonl").blocks[0].rows == [["a", "b"], ["1", "x"], ["2", ""]]
    assert text_of(parse_bytes(b'{"a": {"b": [1, 2], "c": true}}', "a.json")) == "a.b: 1, 2\na.c: true"
    broken = parse_bytes(b"{not json", "a.json")
    assert text_of(broken) == "{not json"
    assert [warning.code for warning in broken.warnings] == ["not_json"]


def test_an_html_mail_with_a_picture_gives_its_text_and_its_attachment() -> None:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "a@example.invalid", "b@example.invalid", "Offer"
    mail.set_content("<p>Price <b>5</b></p>", subtype="html")
    mail.add_attachment(b"a,b\n1,2\n", maintype="text", subtype="csv", filename="p.csv")
    parsed = parse_bytes(bytes(mail), "offer.eml")
    assert "Price 5" in text_of(parsed)
    assert [member.path for member in parsed.members] == ["p.csv"]
    assert [chunk.kind for chunk in chunks_of(parsed)] == ["text", "summary"]


def test_an_epub_gives_its_chapters_in_the_order_of_the_spine() -> None:
    def write(buffer: io.BytesIO) -> None:
        with zipfile.ZipFile(buffer, "w") as book:
            book.writestr("mimetype", "application/epub+zip")
            book.writestr("META-INF/container.xml", '<c><rootfiles><rootfile full-path="o/p.opf"/></rootfiles></c>')
            items = '<item id="a" href="a.xhtml"/><item id="b" href="b.xhtml"/>'
            book.writestr("o/p.opf", f'<p>{items}<itemref idref="b"/><itemref idref="a"/></p>')
            book.writestr("o/a.xhtml", "<html><body><h1>Last</h1></body></html>")
            book.writestr("o/b.xhtml", "<html><body><h1>First</h1></body></html>")

    assert text_of(parse_bytes(_saved(write), "b.epub")) == "# First\n\n# Last"


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("a.pdf", b"%PDF-1.7\nrubbish", "corrupt"),
        ("a.docx", b"PK\x03\x04rubbish" * 9, "corrupt"),
        ("a.exe", b"MZ\x90\x00" + b"\x00" * 99, "unsupported"),
        ("a.txt", bytes(range(256)) * 9, "unsupported"),
        ("a.png", b"\x89PNG\r\n\x1a\n" + b"\x00" * 99, "no_text"),
        ("a.html", b"<div>" * 100_000, "too_deep"),
        ("a.json", b"[" * 100_000 + b"]" * 100_000, "too_deep"),
        ("a.txt", b" \n\t ", "no_text"),
    ],
)
def test_what_cannot_be_read_says_why(name: str, data: bytes, code: str) -> None:
    with pytest.raises(PermanentFailure) as failure:
        parse_bytes(data, name)
    assert failure.value.code == code


def test_too_much_text_names_the_setting() -> None:
    with pytest.raises(PermanentFailure) as failure:
        parse_bytes(b"word " * 1_000, "a.txt", ParsingSettings(text_chars=1_000))
    assert failure.value.code == "too_large"
    assert "PERDURE_PARSING__TEXT_CHARS" in failure.value.detail


@pytest.mark.parametrize(
    ("data", "delimiter_free"),
    [(b'a;b\n"x;y";2\n', ["x;y", "2"]), (b'a,b\n"x\ny",2\n', ["x y", "2"]), (b"a\tb\n1,5\t2\n", ["1,5", "2"])],
)
def test_delimiters_and_line_ends_inside_quotes_do_not_separate(data: bytes, delimiter_free: list[str]) -> None:
    assert " | ".join(delimiter_free) in text_of(parse_bytes(data, "a.csv"))
