"""The last resort for a run of text without any natural end: cut by tokens, at white space or else between graphemes."""

from __future__ import annotations

from bisect import bisect_left

import regex

from services.documents.graphemes import boundary_at_or_before
from services.documents.sentence_ends import protected_spans
from services.documents.token_counter import TokenCounter, count_in_batches

_WINDOW_CHARACTERS = 4_000
_SPACES = regex.compile(r"\s+")


def hard_cut(text: str, start: int, end: int, counter: TokenCounter, limit: int) -> list[tuple[int, int, int]]:
    """(start, end, tokens) of pieces of at most `limit` tokens that cover text[start:end] without a gap.

    The tokenizer sees windows of bounded length, so the work is linear in the length whatever the text is. Only a
    single grapheme of more than `limit` tokens is itself cut.
    """
    spans = protected_spans(text, start, end)
    pieces: list[tuple[int, int]] = []
    place = start
    while place < end:
        window_end = min(place + _WINDOW_CHARACTERS, end)
        ends = _token_ends(counter, text, place, window_end)
        for cut in _cuts(text, place, window_end, ends, limit, spans):
            pieces.append((place, cut))
            place = cut
        if window_end == end and place < end:
            pieces.append((place, end))
            place = end
    counts = count_in_batches(counter, [text[left:right] for left, right in pieces])
    return [
        piece
        for (left, right), count in zip(pieces, counts, strict=True)
        for piece in ([(left, right, max(count, 1))] if count <= limit else _halves(text, left, right, counter, limit))
    ]


def _token_ends(counter: TokenCounter, text: str, start: int, end: int) -> list[int]:
    """Ends of the window's tokens in the whole text's offsets, rising."""
    ends: list[int] = []
    for _, token_end in counter.offsets(text[start:end]):
        ends.append(max(start + token_end, ends[-1] if ends else start))
    return ends


def _cuts(
    text: str, start: int, end: int, token_ends: list[int], limit: int, spans: list[tuple[int, int]]
) -> list[int]:
    """Ends of the window's pieces; what is left after the last one belongs to the next window. Always at least one,
    unless the whole window fits into one piece at the text's end."""
    cuts: list[int] = []
    place, used = start, 0
    while used + limit < len(token_ends):
        wanted = token_ends[used + limit - 1]
        cut = _good_place(text, place, wanted, spans)
        if cut <= place:
            cut = min(place + 1, end)
        cuts.append(cut)
        place = cut
        while used < len(token_ends) and token_ends[used] <= place:
            used += 1
    if not cuts:
        cuts.append(_good_place(text, start, end, spans) if end < len(text) else end)
    return cuts


def _good_place(text: str, floor: int, wanted: int, spans: list[tuple[int, int]]) -> int:
    """The best cut in (floor, wanted]: before a link that would be cut, after white space, between graphemes."""
    around = bisect_left(spans, (wanted, 0)) - 1
    if around >= 0 and floor < spans[around][0] < wanted < spans[around][1]:
        return spans[around][0]
    middle = floor + (wanted - floor) // 2
    space = None
    for space in _SPACES.finditer(text, middle, wanted):  # noqa: B007 - the last match is wanted
        pass
    if space is not None and space.end() > floor:
        wanted = space.end()
    return boundary_at_or_before(text, wanted, floor)


def _halves(text: str, start: int, end: int, counter: TokenCounter, limit: int) -> list[tuple[int, int, int]]:
    """Pieces of a piece whose own count is above its count within the window."""
    if end - start <= 1:
        return [(start, end, limit)]
    middle = boundary_at_or_before(text, (start + end) // 2, start)
    middle = middle if start < middle < end else (start + end) // 2
    result: list[tuple[int, int, int]] = []
    for left, right in ((start, middle), (middle, end)):
        count = counter.count([text[left:right]])[0]
        result += [(left, right, max(count, 1))] if count <= limit else _halves(text, left, right, counter, limit)
    return result
