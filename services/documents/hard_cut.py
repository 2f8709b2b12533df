"""The last resort for a run of text without any natural end: cut by tokens, at white space or else between graphemes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import regex

from services.documents.graphemes import boundary_at_or_before, is_boundary
from services.documents.sentence_ends import protected_spans
from services.documents.token_counter import TokenCounter, count_in_batches

_WINDOW_CHARACTERS = 4_000
_SPACES = regex.compile(r"\s+")


def hard_cut(
    text: str, start: int, end: int, counter: TokenCounter, limit: int, bound: int
) -> list[tuple[int, int, int]]:
    """(start, end, tokens) of pieces that cover text[start:end] without a gap.

    They have about `limit` tokens; a link, formula or grapheme that is longer stays whole up to `bound` and only above
    that is itself cut. The tokenizer sees windows of bounded length, so the work is linear whatever the text is.
    """
    cutter = _Cutter(text, limit, bound, protected_spans(text, start, end))
    pieces: list[tuple[int, int]] = []
    place = start
    while place < end:
        window_end = min(place + _WINDOW_CHARACTERS, end)
        ends = _token_ends(counter, text, place, window_end)
        for cut in cutter.cuts(place, window_end, ends, last=window_end == end):
            pieces.append((place, cut))
            place = cut
    counts = count_in_batches(counter, [text[left:right] for left, right in pieces])
    return [
        piece
        for (left, right), count in zip(pieces, counts, strict=True)
        for piece in ([(left, right, max(count, 1))] if count <= bound else _halves(text, left, right, counter, bound))
    ]


def _token_ends(counter: TokenCounter, text: str, start: int, end: int) -> list[int]:
    """Ends of the window's tokens in the whole text's offsets, rising."""
    ends: list[int] = []
    for _, token_end in counter.offsets(text[start:end]):
        ends.append(max(start + token_end, ends[-1] if ends else start))
    return ends


class _Cutter:
    """Finds the ends of a window's pieces."""

    def __init__(self, text: str, limit: int, bound: int, spans: list[tuple[int, int]]) -> None:
        self._text = text
        self._limit = limit
        self._bound = bound
        self._spans = spans

    def cuts(self, start: int, end: int, token_ends: list[int], *, last: bool) -> list[int]:
        """Rising, at least one. What is left after the last belongs to the next window, unless this is the last."""
        cuts: list[int] = []
        place = start
        while place < end:
            used = bisect_right(token_ends, place)
            if used + self._limit >= len(token_ends):
                if cuts and not last:
                    return cuts
                wanted = end
            else:
                wanted = token_ends[used + self._limit - 1]
            whole = last and wanted == end
            cut = end if whole else self._good_place(place, max(wanted, place + 1), end, token_ends, used)
            cuts.append(cut)
            place = cut
        return cuts

    def _good_place(self, floor: int, wanted: int, end: int, token_ends: list[int], used: int) -> int:
        """The best cut in (floor, wanted]: before a link that would be cut, after white space, between graphemes;
        beyond `wanted` when one link or grapheme fills all of it and fits the bound."""
        around = bisect_left(self._spans, (wanted, 0)) - 1
        if around >= 0 and self._spans[around][0] < wanted < self._spans[around][1]:
            left, right = self._spans[around]
            if left > floor and is_boundary(self._text, left):
                return left
            if right <= end and bisect_right(token_ends, right) - used <= self._bound:
                return right
        spaces = list(_SPACES.finditer(self._text, floor + (wanted - floor) // 2, wanted))
        if spaces and is_boundary(self._text, spaces[-1].end()):
            return spaces[-1].end()
        before = boundary_at_or_before(self._text, wanted, floor)
        if is_boundary(self._text, before):
            return before
        after = wanted
        while after < end and not is_boundary(self._text, after):
            after += 1
        return after if bisect_right(token_ends, after) - used <= self._bound else wanted


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
