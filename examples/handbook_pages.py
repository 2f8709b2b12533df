"""What the generated files of the example handbook say: `sources/` for the paged ones, this module for the rest.

Norrland Kite Works and everybody in it are invented.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Literal

SOURCES = Path(__file__).parent / "sources"
PartKind = Literal["heading", "text", "item", "table", "page"]


@dataclass(frozen=True)
class Part:
    """One block of a page; a table has rows, everything else text."""

    kind: PartKind
    text: str = ""
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Pages:
    """A paged document: its properties (title, author, and for a PDF header, footer, widths_mm) and its blocks."""

    properties: dict[str, str]
    parts: list[Part]


def read_pages(name: str) -> Pages:
    """Reads `sources/<name>.md`: `key: value` lines, a blank line, then blocks with a blank line between them.

    `## ` opens a heading, `1. ` a numbered item of a DOCX, `| ` a table row, `---` a new page.
    """
    blocks = (SOURCES / f"{name}.md").read_text(encoding="utf-8").strip().split("\n\n")
    properties = dict(line.split(": ", 1) for line in blocks[0].splitlines())
    return Pages(properties, [_part(block) for block in blocks[1:]])


def _part(block: str) -> Part:
    if block == "---":
        return Part("page")
    if block.startswith("| "):
        return Part("table", rows=tuple(tuple(line.strip("| ").split(" | ")) for line in block.splitlines()))
    if block.startswith("## "):
        return Part("heading", block.removeprefix("## "))
    if re.match(r"\d+\. ", block):
        return Part("item", block)
    return Part("text", block)


@dataclass(frozen=True)
class Computed:
    """A spreadsheet formula and the value stored with it."""

    formula: str
    value: float


@dataclass(frozen=True)
class Sheet:
    """One sheet of a workbook."""

    name: str
    rows: list[list[str | int | float | date | Computed]]


@dataclass(frozen=True)
class Slide:
    """One slide with its speaker's notes."""

    title: str
    points: list[str]
    notes: str


@dataclass(frozen=True)
class Mail:
    """An e-mail with a plain and an HTML body."""

    sender: str
    recipient: str
    subject: str
    sent_at: datetime
    message_id: str
    text: str
    html: str


EQUIPMENT_PRICES = [
    Sheet(
        "Laptops",
        [
            ["Article", "Name", "Price EUR", "Valid from", "With VAT 25 %"],
            ["LAP-114", "Laptop 14 inch, office", 1180, date(2026, 1, 15), Computed("=C2*1.25", 1475)],
            ["LAP-116", "Laptop 16 inch, design", 2360, date(2026, 1, 15), Computed("=C3*1.25", 2950)],
            ["LAP-120", "Tablet for the warehouse", 640, date(2025, 11, 3), Computed("=C4*1.25", 800)],
            ["ACC-201", "Docking station", 190, date(2025, 11, 3), Computed("=C5*1.25", 237.5)],
            ["ACC-208", "Hardware key, pair", 96, date(2026, 2, 1), Computed("=C6*1.25", 120)],
        ],
    ),
    Sheet(
        "Workshop",
        [
            ["Article", "Name", "Price EUR", "Supplier", "Delivery days", "Minimum order", "Order value EUR"],
            ["WRK-310", "Hot knife for ripstop", 74, "Bergman Verktyg", 6, 2, Computed("=C2*F2", 148)],
            ["WRK-322", "Industrial sewing machine", 3890, "Halvorsen Maskin", 35, 1, Computed("=C3*F3", 3890)],
            ["WRK-341", "Spar saw blade", 18.5, "Bergman Verktyg", 6, 20, Computed("=C4*F4", 370)],
            ["WRK-355", "Line tension meter", 412, "Zuiderzee Instruments", 14, 1, Computed("=C5*F5", 412)],
            ["PPR-9087", "Patch kit, ripstop, 20 pieces", 11.4, "own make", 2, 10, Computed("=C6*F6", 114)],
        ],
    ),
    Sheet(
        "Exchange rates",
        [
            ["Currency", "Per EUR", "Fixed on", "Used until"],
            ["SEK", 11.2, date(2026, 1, 2), date(2026, 6, 30)],
            ["CNY", 7.8, date(2026, 1, 2), date(2026, 6, 30)],
        ],
    ),
]

ONBOARDING = [
    Slide(
        "Welcome to Norrland Kite Works",
        ["Your first ninety days"],
        "Karin Ek gives this talk on the first Monday of each month, in the Aurora room and on video.",
    ),
    Slide(
        "Day one",
        [
            "09:00 coffee with your lead",
            "10:00 laptop, two hardware keys, badge",
            "13:00 tour of the halls",
            "Your buddy is named in the invitation",
        ],
        "Laptops are handed out by the help desk. If the laptop is missing, ask Nils Forsberg, not the supplier.",
    ),
    Slide(
        "Your first two weeks",
        [
            "Finish the courses 'Security' and 'Working with blades'",
            "Read SEC-031",
            "Fly a kite with the test pilots on Friday",
        ],
        "The blade course is needed before anybody enters hall B. Its certificate lasts 24 months.",
    ),
    Slide(
        "Goals",
        ["Three goals, agreed by day 30", "Talks after 30, 60 and 90 days", "Form HRF-1022"],
        "The talk on day 60 may be by video; the one on day 90 is in person.",
    ),
    Slide(
        "Benefits",
        [
            "Wellness: SEK 5,000 a year in Sweden, EUR 420 in the Netherlands, CNY 2,400 in China",
            "One kite of your own choice after six months",
            "Language lessons: two hours a week",
        ],
        "The free kite may not be a Vindfot. Colleagues who leave within a year give the kite back.",
    ),
    Slide(
        "Whom to ask",
        ["People: Karin Ek, extension 4420", "Computers: extension 4410", "Anything else: your buddy"],
        "In Shenzhen the people contact is Zhou Min, extension 6610.",
    ),
]

UTRECHT_MOVE = Mail(
    sender="Daan Visser <daan.visser@norrlandkites.example>",
    recipient="everyone@norrlandkites.example",
    subject="We are moving: Utrecht office – new address from 18 May",
    sent_at=datetime(2026, 3, 9, 8, 30, tzinfo=UTC),
    message_id="<20260309.0830.utrecht-move@norrlandkites.example>",
    text=(
        "Dear all,\n\n"
        "the Utrecht office moves to Kanaalweg 88 on Monday, 18 May 2026. The warehouse stays where it is.\n\n"
        "Pack your desk by Thursday, 14 May, 16:00. Orange crates come on 11 May; each person gets three.\n"
        "On Friday, 15 May, everybody in Utrecht works from home.\n\n"
        "Femke de Boer leads the move. Questions: move@norrlandkites.example or extension 5530.\n"
        "The new office has 18 desks, so book one in the calendar. There is no car park; 40 bicycles fit.\n\n"
        "Daan Visser\n"
    ),
    html=(
        "<html><body><p>Dear all,</p>"
        "<p>the Utrecht office moves to <b>Kanaalweg 88</b> on <b>Monday, 18 May 2026</b>. "
        "The warehouse stays where it is.</p>"
        "<p>Pack your desk by Thursday, 14 May, 16:00. Orange crates come on 11 May; each person gets three. "
        "On Friday, 15 May, everybody in Utrecht works from home.</p>"
        "<p>Femke de Boer leads the move. Questions: move@norrlandkites.example or extension 5530. "
        "The new office has 18 desks, so book one in the calendar. There is no car park; 40 bicycles fit.</p>"
        "<p>Daan Visser</p></body></html>"
    ),
)
