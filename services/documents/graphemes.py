"""Extended grapheme clusters (UAX #29): no cut may fall inside one."""

from __future__ import annotations

import regex

_CLUSTER = regex.compile(r"\X")
_PLAIN_AFTER = regex.compile(r"[\t\n -~¡-˿、。！？；，：「」『』（）一-鿿]")
_PREPEND = regex.compile(r"[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u0d4e\U000110bd\U000110cd]")
_LOOK_BACK = 64


def is_boundary(text: str, at: int) -> bool:
    """Whether a cut before text[at] splits no grapheme."""
    if at <= 0 or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if before == "\r" and after == "\n":
        return False
    if before == "\n" or (_PLAIN_AFTER.match(after) and not _PREPEND.match(before)):
        return True
    start = _surely_start(text, at)
    while start < at:
        match = _CLUSTER.match(text, start)
        assert match is not None
        start = match.end()
    return start == at


def boundary_at_or_before(text: str, at: int, floor: int) -> int:
    """The last cut place in (floor, at] that splits no grapheme; `at` itself when one grapheme fills all of it."""
    place = at
    while place > floor and not is_boundary(text, place):
        place -= 1
    return place if place > floor else at


def _surely_start(text: str, at: int) -> int:
    """A cluster start at most a look-back before `at`: a line feed or a plain letter that nothing can join leftwards."""
    for place in range(at - 1, max(at - _LOOK_BACK, 0), -1):
        if _PLAIN_AFTER.match(text[place]) and not _PREPEND.match(text[place - 1]):
            return place
    return max(at - _LOOK_BACK, 0)
