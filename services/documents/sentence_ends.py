"""Where a text may be cut: ends of sentences, lines and clauses, never inside a grapheme, link, formula or code span."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import regex

from services.documents.graphemes import is_boundary

CutKind = Literal["sentence", "line", "clause"]

_SENTENCE_END = regex.compile(
    r"[。！？；｡…]+[”’」』）》】\"')\]]*"  # East Asian marks end a sentence with nothing after them
    r"|[.!?؟۔।॥]+[”’\"')\]»]*(?=\s)"  # others need white space
)
_LINE_END = regex.compile(r"\n")
_CLAUSE_END = regex.compile(r"[，、：,;:|](?=[\s\p{L}\p{N}/\"'])|[—–](?=\s)")
_ABBREVIATION = regex.compile(
    r"(?:\b(?:[A-Z]|[Mm]rs?|[Mm]s|[Dd]rs?|[Pp]rof|[Ss]t|[Ss]r|[Jj]r|vs|[Nn]os?|[Ff]ig|[Ee]qs?|[Ss]ec|[Cc]h|[Vv]ol|pp|p"
    r"|[Aa]pprox|[Dd]ept|[Ee]st|[Ii]nc|[Ll]td|[Cc]o|[Cc]orp|cf|ca|al|e\.g|i\.e|z\.B|d\.h|bzw|[Nn]r|[Aa]rt|[Aa]bs)|\b\d{1,3})\.$"
)
_SENTENCE_START = regex.compile(r"\s+[\"'“‘«(\[*_`¿¡]*[\p{Lu}\p{Lt}\p{Lo}\p{N}\p{So}\p{Sm}#$-]")
_PROTECTED = regex.compile(
    r"!?\[[^\[\]\n]{0,300}\]\([^()\s]{0,2000}(?:\([^()\s]{0,200}\)[^()\s]{0,2000})?\)"  # [text](target)
    r"|https?://[^\s<>\"'，。；！？、）】》\u4e00-\u9fff]{1,2000}"
    r"|\$\$[^$]{1,2000}\$\$|\$[^\s$](?:[^$\n]{0,300}[^\s$])?\$(?![0-9])"  # LaTeX
    r"|\\\((?:[^\\]|\\[^)(]){0,1000}\\\)|\\\[(?:[^\\]|\\[^\]\[]){0,1000}\\\]"
    r"|`[^`\n]{1,300}`"
)
_PROTECTED_HINT = regex.compile(r"\]\(|://|\$|\\[(\[]|`")


def protected_spans(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Links, formulas and code spans in text[start:end], in order; marks that join their last character are in."""
    if not _PROTECTED_HINT.search(text, start, end):
        return []
    spans: list[tuple[int, int]] = []
    for match in _PROTECTED.finditer(text, start, end):
        right = match.end()
        while right < end and not is_boundary(text, right):
            right += 1
        spans.append((match.start(), right))
    return spans


def cut_places(text: str, start: int, end: int, by: CutKind) -> list[int]:
    """Places strictly inside (start, end) where a piece may end, in order."""
    finders = {"sentence": _sentence_ends, "line": _line_ends, "clause": _clause_ends}
    spans = protected_spans(text, start, end)
    places: list[int] = []
    current = 0
    for place in finders[by](text, start, end):
        while current < len(spans) and spans[current][1] <= place:
            current += 1
        inside = current < len(spans) and spans[current][0] < place < spans[current][1]
        if start < place < end and not inside and is_boundary(text, place):
            places.append(place)
    return places


def _sentence_ends(text: str, start: int, end: int) -> Iterator[int]:
    for match in _SENTENCE_END.finditer(text, start, end):
        place = match.end()
        if text[match.start()] == ".":
            if not _SENTENCE_START.match(text, place):
                continue
            if match.group() == "." and _ABBREVIATION.search(text, max(start, place - 12), place):
                continue
        yield place


def _line_ends(text: str, start: int, end: int) -> Iterator[int]:
    return (match.end() for match in _LINE_END.finditer(text, start, end))


def _clause_ends(text: str, start: int, end: int) -> Iterator[int]:
    return (match.end() for match in _CLAUSE_END.finditer(text, start, end))
