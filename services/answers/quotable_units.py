"""What of a passage may be quoted: its sentences, list items and table rows, each with what it needs to be understood."""

from __future__ import annotations

from dataclasses import dataclass

import regex

from schemas.passages import Passage, PassagePart
from services.retrieval.citation_support import quotable_spans
from services.retrieval.sentences import sentence_spans

_RULER = regex.compile(r"\|?(?:\s*:?-{2,}:?\s*\|)+(?:\s*:?-{2,}:?\s*)?")
_ROW = regex.compile(r"\|.*\|")
_HEADING = regex.compile(r"(#{1,6})\s+(.*)")


@dataclass(frozen=True)
class Unit:
    """passage.text[start:end]; `header` is a table's header row, `headings` the titles it stands under."""

    start: int
    end: int
    header: str | None
    headings: str


def quotable_units(passage: Passage) -> list[Unit]:
    """In text order, each inside one chunk. Headings, table headers and rulers give sense to others, and are no unit
    themselves, unless a passage holds nothing else."""
    units: dict[tuple[int, int], Unit] = {}
    headings = " ".join(passage.heading_path)
    header = _header_of(passage.context)
    for part in passage.parts:
        header = _header_of(part.context) or header
        text = passage.text[part.passage_start : part.passage_end]
        spans = sentence_spans(text)
        for number, (start, end) in enumerate(spans):
            line = text[start:end]
            following = text[slice(*spans[number + 1])] if number + 1 < len(spans) else ""
            if heading := _HEADING.match(line):
                headings, header = heading.group(2), None
            elif _RULER.fullmatch(line) or line.startswith("```"):
                continue
            elif _ROW.fullmatch(line) and _RULER.fullmatch(following):
                header = line
            else:
                units.setdefault(
                    (part.passage_start + start, part.passage_start + end),
                    _unit(part, start, end, line, header, headings),
                )
                header = header if _ROW.fullmatch(line) else None
    if not units:
        return [Unit(start, end, None, "") for start, end in quotable_spans(passage)]
    return sorted(units.values(), key=lambda unit: unit.start)


def _unit(part: PassagePart, start: int, end: int, line: str, header: str | None, headings: str) -> Unit:
    row = _ROW.fullmatch(line) is not None
    return Unit(part.passage_start + start, part.passage_start + end, header if row else None, headings)


def _header_of(context: str | None) -> str | None:
    """The header row that chunking repeats over the later pieces of a long table."""
    if not context:
        return None
    rows = [line.strip() for line in context.splitlines() if _ROW.fullmatch(line.strip())]
    rows = [row for row in rows if not _RULER.fullmatch(row)]
    return rows[-1] if rows else None
