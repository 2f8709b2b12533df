"""Small files of each format, made by the libraries that people's programs use."""

from __future__ import annotations

import io
import zipfile
from email.message import EmailMessage

from docx import Document
from openpyxl import Workbook
from pptx import Presentation
from pptx.util import Inches
from reportlab.pdfgen.canvas import Canvas

MARKDOWN = """# Leave policy

Everybody has thirty days of leave a year.

## Carrying over

| Year | Days carried over |
| --- | --- |
| 2025 | five |
| 2026 | seven |
"""

HTML = """<html><head><title>Office guide</title></head><body><nav>NAVHOME</nav><main><h1>Office guide</h1>
<p>The reception opens at eight.</p><h2>Rooms</h2>
<table><tr><th>Room</th><th>Seats</th></tr><tr><td>Aurora</td><td>twelve</td></tr></table></main></body></html>"""

CSV = "date,country,name\n2026-01-01,SE,New Year\n2026-06-19,SE,Midsummer Eve\n"


def pdf(*pages: list[str], password: str | None = None) -> bytes:
    """One list of lines a page; a page without lines has no text."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, encrypt=password) if password else Canvas(buffer)
    for lines in pages:
        for number, line in enumerate(lines):
            canvas.setFont("Helvetica", 11)
            canvas.drawString(72, 760 - 18 * number, line)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def docx() -> bytes:
    document = Document()
    document.add_heading("Travel", level=1)
    document.add_paragraph("Trips above two thousand euro need the finance director.")
    document.add_heading("Rates", level=2)
    table = document.add_table(rows=2, cols=2)
    for row, values in zip(table.rows, [("City", "Euro a night"), ("Utrecht", "one hundred forty")], strict=True):
        for cell, value in zip(row.cells, values, strict=True):
            cell.text = value
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def xlsx() -> bytes:
    workbook = Workbook()
    sheet = workbook.active
    assert sheet is not None
    sheet.title = "Laptops"
    for row in (("Article", "Price"), ("LAP-114", 1180), ("LAP-116", 1590)):
        sheet.append(row)
    workbook.create_sheet("Rates").append(("Currency", "Rate"))
    buffer = io.BytesIO()
    workbook.save(buffer)
    return buffer.getvalue()


def pptx() -> bytes:
    presentation = Presentation()
    for title, body in (("Welcome", "Coffee with your lead at nine"), ("Goals", "Ship the kite by autumn")):
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = body
        slide.notes_slide.notes_text_frame.text = f"Say hello on {title}"
    box = presentation.slides[0].shapes.add_textbox(Inches(1), Inches(5), Inches(3), Inches(1))
    box.text_frame.text = "Badge at the front desk"
    buffer = io.BytesIO()
    presentation.save(buffer)
    return buffer.getvalue()


def eml(body: str = "We move to Utrecht in May.", attachment: bytes | None = CSV.encode()) -> bytes:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "ann@example.org", "all@example.org", "We are moving"
    message.set_content(body)
    if attachment is not None:
        message.add_attachment(attachment, maintype="text", subtype="csv", filename="days.csv")
    return message.as_bytes()


def archive(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            packed.writestr(name, data)
    return buffer.getvalue()
