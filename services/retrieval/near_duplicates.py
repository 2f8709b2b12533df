"""Near-duplicates: texts whose 5-word shingles (5 characters in scripts without spaces) overlap by Jaccard >= 0.85.

Broder, "On the resemblance and containment of documents" (1997). Texts that differ in a number or an identifier are
never taken for the same: last year's price list is not this year's.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import regex

from services.retrieval import tokenising
from services.retrieval.text_folding import fold

SHINGLE = 5
PRINTS_KEPT = 1_000
"""Some 20 kB each."""
_DIGITS = regex.compile(r"\d+(?:[.,]\d+)*")


def shingles(text: str) -> frozenset[tuple[str, ...]]:
    """Words shingle by word; a stretch without spaces counts each character as one."""
    return _shingles_of(fold(text))


def _shingles_of(folded: str) -> frozenset[tuple[str, ...]]:
    units = tokenising.runs(folded)
    if not folded.isascii():
        units = [unit for run in units for unit in (run if tokenising.is_unspaced(run) else (run,))]
    if len(units) <= SHINGLE:
        return frozenset({tuple(units)}) if units else frozenset()
    return frozenset(zip(*(units[start:] for start in range(SHINGLE)), strict=False))


@lru_cache(PRINTS_KEPT)
def _print_of(text: str) -> tuple[frozenset[tuple[str, ...]], frozenset[str]]:
    """Shingles and numbers. What is found once is found again by the next question about it."""
    folded = fold(text)
    return _shingles_of(folded), frozenset(_DIGITS.findall(folded))


def jaccard(left: frozenset[tuple[str, ...]], right: frozenset[tuple[str, ...]]) -> float:
    if left.isdisjoint(right):  # nearly always, and it makes no set
        return 0.0
    both = len(left & right)
    return both / (len(left) + len(right) - both)


def group_near_duplicates(texts: Sequence[str], threshold: float = 0.85) -> list[list[int]]:
    """Groups of positions, each led by its earliest member; the leaders are in order.

    Compared with leaders only, so a chain of small changes cannot join texts that differ.
    """
    prints = [_print_of(text) for text in texts]
    groups: list[list[int]] = []
    for position, (own, numbers) in enumerate(prints):
        for group in groups:
            leader, leader_numbers = prints[group[0]]
            if numbers == leader_numbers and jaccard(own, leader) >= threshold:
                group.append(position)
                break
        else:
            groups.append([position])
    return groups
