"""The text of a Word paragraph's runs."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from services.documents.parsers.office_package import W, local_name

_LEFT_OUT = {
    f"{W}{name}" for name in ("del", "moveFrom", "txbxContent", "pPr", "rPr", "instrText", "delText", "delInstrText")
}
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_MATH_TEXT = "{http://schemas.openxmlformats.org/officeDocument/2006/math}t"
_BOX = f"{W}txbxContent"


def paragraph_text(paragraph: etree._Element) -> tuple[str, int]:
    """The visible text, and how many hidden runs were left out."""
    parts: list[str] = []
    hidden = 0
    stack = list(reversed(paragraph))
    while stack:
        element = stack.pop()
        if element.tag in _LEFT_OUT or element.tag == _FALLBACK:
            continue
        if element.tag == f"{W}r" and _is_hidden(element):
            hidden += any((node.text or "").strip() for node in element.iter(f"{W}t"))
            continue
        parts.append(_own_text(element))
        stack.extend(reversed(element))
    return "".join(parts), hidden


def _own_text(element: etree._Element) -> str:
    if element.tag in {f"{W}t", _MATH_TEXT}:
        return element.text or ""
    if element.tag in {f"{W}tab", f"{W}ptab"}:
        return "\t"
    if element.tag in {f"{W}br", f"{W}cr"}:
        return "\n"
    if element.tag == f"{W}noBreakHyphen":
        return "-"
    if element.tag in {f"{W}footnoteReference", f"{W}endnoteReference"}:
        return f"[{element.get(f'{W}id')}]"
    if local_name(element) == "docPr":
        return _alternative_text(element)
    return ""


def _alternative_text(element: etree._Element) -> str:
    description = (element.get("descr") or "").strip()
    return f" {description} " if description else ""


def _is_hidden(run: etree._Element) -> bool:
    for name in ("vanish", "webHidden"):
        mark = run.find(f"{W}rPr/{W}{name}")
        if mark is not None and mark.get(f"{W}val") not in {"0", "false", "off"}:
            return True
    return False


def boxes(paragraph: etree._Element) -> Iterator[etree._Element]:
    """Text boxes anchored in the paragraph; of the two renderings that newer writers give, the first."""
    stack = list(reversed(paragraph))
    while stack:
        element = stack.pop()
        if element.tag == _BOX:
            yield element
        elif element.tag != _FALLBACK:
            stack.extend(reversed(element))
