"""What a Word paragraph's style makes of it: heading, list item, quote or plain."""

from __future__ import annotations

from dataclasses import dataclass

import regex
from lxml import etree

from services.documents.parsers.office_package import OfficePackage, W

_HEADING_NAME = regex.compile(r"(?:heading|überschrift|titre|título|标题|標題|見出し)\s*([1-9])", regex.I)


@dataclass(frozen=True)
class ParagraphStyle:
    """What a paragraph style means for reading."""

    heading: int = 0
    list_level: int = 0
    quote: bool = False
    title: bool = False


class Styles:
    """The document's paragraph styles by id, with what they inherit."""

    def __init__(self, package: OfficePackage, main: str) -> None:
        self._elements: dict[str, etree._Element] = {}
        for name in package.related_by_type(main, "styles"):
            for style in package.xml(name).iter(f"{W}style"):
                self._elements[style.get(f"{W}styleId") or ""] = style
        self._known: dict[str, ParagraphStyle] = {}

    def of(self, paragraph: etree._Element) -> ParagraphStyle:
        """The paragraph's own numbering and outline level win over those of its style."""
        properties = paragraph.find(f"{W}pPr")
        if properties is None:
            return ParagraphStyle()
        style = self._named(_value(properties.find(f"{W}pStyle")))
        outline = _value(properties.find(f"{W}outlineLvl"))
        heading = int(outline) + 1 if outline.isdecimal() and int(outline) < 9 else style.heading
        number = properties.find(f"{W}numPr")
        level = style.list_level
        if number is not None and _value(number.find(f"{W}numId")) != "0":
            depth = _value(number.find(f"{W}ilvl"))
            level = min(int(depth), 8) + 1 if depth.isdecimal() else 1
        return ParagraphStyle(heading, level, style.quote, style.title)

    def _named(self, style_id: str) -> ParagraphStyle:
        if style_id not in self._known:
            self._known[style_id] = self._resolve(style_id)
        return self._known[style_id]

    def _resolve(self, style_id: str) -> ParagraphStyle:
        found = self._judge(style_id, style_id)
        current, seen = style_id, {style_id}
        while found == ParagraphStyle() and (element := self._elements.get(current)) is not None:
            name = _value(element.find(f"{W}name"))
            outline = _value(element.find(f"{W}pPr/{W}outlineLvl"))
            if outline.isdecimal() and int(outline) < 9:
                return ParagraphStyle(heading=int(outline) + 1)
            found = self._judge(current, name)
            current = _value(element.find(f"{W}basedOn"))
            if current in seen:
                break
            seen.add(current)
        return found

    @staticmethod
    def _judge(style_id: str, name: str) -> ParagraphStyle:
        match = _HEADING_NAME.search(name) or _HEADING_NAME.search(style_id)
        if match:
            return ParagraphStyle(heading=int(match.group(1)))
        lowered = name.lower()
        if lowered == "title":
            return ParagraphStyle(heading=1, title=True)
        if lowered.startswith(("list bullet", "list number", "listbullet", "listnumber")):
            depth = lowered[-1]
            return ParagraphStyle(list_level=int(depth) if depth.isdecimal() else 1)
        return ParagraphStyle(quote="quote" in lowered)


def _value(element: etree._Element | None) -> str:
    return (element.get(f"{W}val") or "") if element is not None else ""
