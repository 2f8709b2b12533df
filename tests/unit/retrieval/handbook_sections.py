"""The readable pages of the example handbook cut at their headings: a small corpus in English and Chinese."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

EXAMPLES = Path(__file__).parents[3] / "examples"


@dataclass(frozen=True)
class Section:
    document: str
    title: str
    text: str


@cache
def handbook_sections() -> list[Section]:
    sections = []
    pages = [EXAMPLES / "sources", EXAMPLES / "handbook"]
    for path in sorted(p for root in pages for p in root.rglob("*") if p.suffix in (".md", ".html")):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".html":
            text = _plain(text)
        named = re.match(r"title: (.*)\n", text)
        body = re.sub(r"(?m)^(title|author|header|footer|widths_mm):.*\n", "", text)
        heading = re.search(r"(?m)^#+ (.*)$", body)
        title = named.group(1) if named else heading.group(1) if heading else path.stem
        pieces = (piece.strip() for piece in re.split(r"(?m)^(?=#+ )", body))
        sections += [Section(path.name, title, piece) for piece in pieces if len(piece) > 30]
    return sections


def _plain(page: str) -> str:
    page = re.sub(r"(?s)<(script|style|nav|footer).*?</\1>", "", page)
    page = re.sub(r"(?s)<h[123][^>]*>(.*?)</h[123]>", r"\n## \1\n", page)
    return html.unescape(re.sub(r"<[^>]+>", " ", page))
