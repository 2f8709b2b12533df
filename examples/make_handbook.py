"""Makes the binary files of `examples/handbook` (PDF, DOCX, XLSX, PPTX, EML); its text files are written by hand.

Run `python examples/make_handbook.py` after changing `sources/` or `handbook_pages.py`. The same source gives the same
parts: dates, ids and boundaries are fixed, archives are rewritten with one timestamp, PDF streams stay uncompressed.
"""

from __future__ import annotations

import io
import re
import sys
import zipfile
from datetime import UTC, date, datetime
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path
from typing import Any

import handbook_pages as pages
from docx import Document
from openpyxl import Workbook
from pptx import Presentation
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.platypus import BaseDocTemplate, Frame, PageBreak, PageTemplate, Paragraph, Spacer, Table, TableStyle

HANDBOOK = Path(__file__).parent / "handbook"
MADE_AT = datetime(2026, 1, 12, 8, 0, tzinfo=UTC)
ZIP_TIME = (2026, 1, 12, 8, 0, 0)
CHINESE_FONT = "STSong-Light"  # not embedded: any reader with a Chinese font shows it, and the file stays small


def repacked(archive: bytes, edits: dict[str, Any] | None = None) -> bytes:
    """The Office archive with fixed timestamps. `edits` maps a member's name to a function on its XML text."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            data = source.read(name)
            if edits and name in edits:
                data = edits[name](data.decode()).encode()
            info = zipfile.ZipInfo(name, ZIP_TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            target.writestr(info, data)
    return out.getvalue()


def pdf(page: pages.Pages, *, chinese: bool = False) -> bytes:
    """A4 pages with a running header and footer."""
    font, bold = (CHINESE_FONT, CHINESE_FONT) if chinese else ("Helvetica", "Helvetica-Bold")
    body = ParagraphStyle(
        "body", fontName=font, fontSize=10.5, leading=15, spaceAfter=6, wordWrap="CJK" if chinese else None
    )
    cell = ParagraphStyle("cell", parent=body, fontSize=9, leading=12, spaceAfter=0)
    heading = ParagraphStyle("heading", parent=body, fontName=bold, fontSize=13, leading=18, spaceBefore=8)
    title = ParagraphStyle("title", parent=heading, fontSize=19, leading=26, spaceAfter=10)
    grid = TableStyle([("GRID", (0, 0), (-1, -1), 0.6, colors.black), ("VALIGN", (0, 0), (-1, -1), "TOP")])
    about = page.properties
    widths = [int(width) * mm for width in about["widths_mm"].split()]

    def furniture(canvas: Any, template: Any) -> None:
        canvas.setFont(font, 8)
        canvas.drawString(20 * mm, 285 * mm, about["header"])
        canvas.drawRightString(190 * mm, 12 * mm, about["footer"].format(page=template.page))

    story: list[Any] = [Paragraph(about["title"], title)]
    for part in page.parts:
        if part.kind == "table":
            rows = [[Paragraph(text, cell) for text in row] for row in part.rows]
            story += [Table(rows, colWidths=widths, repeatRows=1, style=grid), Spacer(1, 4 * mm)]
        elif part.kind == "page":
            story.append(PageBreak())
        else:
            story.append(Paragraph(part.text, heading if part.kind == "heading" else body))
    out = io.BytesIO()
    file = BaseDocTemplate(
        out, pagesize=A4, title=about["title"], author=about["author"], invariant=1, pageCompression=0
    )
    frame = Frame(20 * mm, 18 * mm, 170 * mm, 262 * mm, id="page")
    file.addPageTemplates(PageTemplate(id="page", frames=[frame], onPage=furniture))
    file.build(story)
    return out.getvalue()


def docx(page: pages.Pages) -> bytes:
    file = Document()
    properties = file.core_properties
    properties.title, properties.author = page.properties["title"], page.properties["author"]
    properties.created = properties.modified = MADE_AT
    file.add_heading(page.properties["title"], level=0)
    for part in page.parts:
        if part.kind == "table":
            table = file.add_table(rows=0, cols=len(part.rows[0]), style="Table Grid")
            for row in part.rows:
                for target, text in zip(table.add_row().cells, row, strict=True):
                    target.text = text
        elif part.kind == "heading":
            file.add_heading(part.text, level=1)
        elif part.kind == "item":
            file.add_paragraph(part.text.split(". ", 1)[1], style="List Number")
        else:
            file.add_paragraph(part.text)
    out = io.BytesIO()
    file.save(out)
    return repacked(out.getvalue())


def xlsx(sheets: list[pages.Sheet]) -> bytes:
    """Workbook whose formulas carry the values a spreadsheet program would have stored beside them."""
    book = Workbook()
    book.remove(book.active)
    book.properties.creator, book.properties.created = "Daan Visser", MADE_AT.replace(tzinfo=None)
    edits: dict[str, Any] = {"docProps/core.xml": _with_fixed_modified_time}
    for number, sheet in enumerate(sheets, 1):
        target = book.create_sheet(sheet.name)
        cached: dict[str, float] = {}
        for row in sheet.rows:
            target.append([value.formula if isinstance(value, pages.Computed) else value for value in row])
            for cell, value in zip(target[target.max_row], row, strict=True):
                if isinstance(value, pages.Computed):
                    cached[cell.coordinate] = value.value
                elif isinstance(value, date):
                    cell.number_format = "yyyy-mm-dd"
        edits[f"xl/worksheets/sheet{number}.xml"] = lambda xml, cached=cached: _with_cached_values(xml, cached)
    out = io.BytesIO()
    book.save(out)
    return repacked(out.getvalue(), edits)


def _with_cached_values(xml: str, cached: dict[str, float]) -> str:
    for coordinate, value in cached.items():
        pattern = rf'(<c r="{coordinate}"[^>]*><f>[^<]*</f>)<v\s*/>'
        xml, count = re.subn(pattern, rf"\g<1><v>{value:g}</v>", xml.replace("<v></v>", "<v/>"))
        assert count == 1, f"no formula found at {coordinate}"
    return xml


def _with_fixed_modified_time(xml: str) -> str:
    return re.sub(r"(<dcterms:modified[^>]*>)[^<]*", rf"\g<1>{MADE_AT:%Y-%m-%dT%H:%M:%SZ}", xml)


def pptx(slides: list[pages.Slide]) -> bytes:
    deck = Presentation()
    properties = deck.core_properties
    properties.title, properties.author = slides[0].title, "Karin Ek"
    properties.created = properties.modified = MADE_AT
    for number, slide in enumerate(slides):
        target = deck.slides.add_slide(deck.slide_layouts[0 if number == 0 else 1])
        target.shapes.title.text = slide.title
        target.placeholders[1].text = "\n".join(slide.points)
        target.notes_slide.notes_text_frame.text = slide.notes
    out = io.BytesIO()
    deck.save(out)
    return repacked(out.getvalue())


def eml(mail: pages.Mail) -> bytes:
    message = EmailMessage(policy=SMTP)
    message["From"], message["To"], message["Subject"] = mail.sender, mail.recipient, mail.subject
    message["Date"] = mail.sent_at
    message["Message-ID"] = mail.message_id
    message.set_content(mail.text)
    message.add_alternative(mail.html, subtype="html")
    message.set_boundary("=_norrland-kite-works")
    return message.as_bytes()


def made_files() -> dict[str, bytes]:
    """Every generated file's bytes by its path inside the handbook."""
    pdfmetrics.registerFont(UnicodeCIDFont(CHINESE_FONT))
    return {
        "it/security-policy.pdf": pdf(pages.read_pages("security-policy")),
        "operations/incident-runbook.pdf": pdf(pages.read_pages("incident-runbook")),
        "products/产品安全须知.pdf": pdf(pages.read_pages("产品安全须知"), chinese=True),
        "finance/travel-expenses.docx": docx(pages.read_pages("travel-expenses")),
        "finance/报销流程.docx": docx(pages.read_pages("报销流程")),
        "finance/equipment-prices.xlsx": xlsx(pages.EQUIPMENT_PRICES),
        "people/onboarding.pptx": pptx(pages.ONBOARDING),
        "announcements/2026-03-utrecht-move.eml": eml(pages.UTRECHT_MOVE),
    }


def main() -> int:
    for path, data in made_files().items():
        (HANDBOOK / path).write_bytes(data)
        print(f"{len(data):>7} {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
