"""Sentence spans of a text, without changing it.

A sentence ends at . ! ? or their CJK forms (closing quotes and brackets included), at a blank line, and at the end
of a line that is a heading, a list item or a table row. A single line break inside a paragraph is a soft wrap.
"""

from __future__ import annotations

import regex

MAX_SENTENCE_CHARS = 1_000

_CLOSERS = "\"'”’）)】」』》\\]"
_ENDINGS = regex.compile(rf"(?:[。！？…]+[{_CLOSERS}]*|[.!?]+[{_CLOSERS}]*(?=\s|$|\[\d))")
_ABBREVIATION = regex.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|etc|cf|vs|approx|no|nos|fig|figs|eq|sec|ch|art|vol|pp?|mr|mrs|ms|dr|prof|st|jr|sr|inc|ltd|co|"
    r"corp|dept|est|al)\.$",
    regex.IGNORECASE,
)
_INITIAL = regex.compile(r"\b\p{Lu}\.\s+\p{Lu}\p{Ll}")
_LIST_NUMBER = regex.compile(r"^\s*(?:\d{1,3}|[a-z])\.$")
_OWN_LINE = regex.compile(
    r"\s*(?:#{1,6}\s|[-*+•·▪]\s|\d{1,3}[.)、]\s?|[(（]?[一二三四五六七八九十]+[)）、]|\||>\s|```)"
)


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Non-empty spans in order, without the white space around them; over-long ones are cut at MAX_SENTENCE_CHARS."""
    spans = []
    for line_start, line_end in _logical_lines(text):
        for start, end in _sentences_of_line(text, line_start, line_end):
            spans.extend(_cut(text, start, end))
    return spans


def _logical_lines(text: str) -> list[tuple[int, int]]:
    """Soft-wrapped lines joined; a line of its own kind stays alone."""
    lines: list[tuple[int, int]] = []
    position = 0
    joinable = False
    for line in text.splitlines(keepends=True):
        end = position + len(line)
        stripped = line.strip()
        own = bool(_OWN_LINE.match(line)) or "\t" in stripped or stripped.startswith("#") or " | " in stripped
        if joinable and stripped and not own:
            lines[-1] = (lines[-1][0], end)
        elif stripped:
            lines.append((position, end))
        # a list item may be wrapped too; a heading or a table row is never continued
        joinable = bool(stripped) and not (
            stripped.startswith(("#", "|", "```")) or "\t" in stripped or " | " in stripped
        )
        position = end
    return lines


def _sentences_of_line(text: str, start: int, end: int) -> list[tuple[int, int]]:
    spans = []
    begin = start
    if text[start:end].lstrip().startswith("|"):
        return [_trimmed(text, start, end)]  # a table row is one statement, whatever its cells say
    for match in _ENDINGS.finditer(text, start, end):
        if match.group().startswith(".") and _no_end(text, begin, match.start() + 1):
            continue
        spans.append((begin, match.end()))
        begin = match.end()
    spans.append((begin, end))
    return [span for span in (_trimmed(text, *span) for span in spans) if span[0] < span[1]]


def _no_end(text: str, begin: int, after_dot: int) -> bool:
    head = text[max(begin, after_dot - 12) : after_dot]
    if _INITIAL.match(text, after_dot - 2):
        return True
    return bool(_ABBREVIATION.search(head) or (after_dot - begin < 12 and _LIST_NUMBER.match(text[begin:after_dot])))


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _cut(text: str, start: int, end: int) -> list[tuple[int, int]]:
    pieces = []
    while end - start > MAX_SENTENCE_CHARS:
        space = text.rfind(" ", start + MAX_SENTENCE_CHARS // 2, start + MAX_SENTENCE_CHARS)
        middle = space if space > 0 else start + MAX_SENTENCE_CHARS
        pieces.append(_trimmed(text, start, middle))
        start = _trimmed(text, middle, end)[0]
    return [*pieces, (start, end)]
