"""From ranked chunks to numbered passages: neighbours join, short hits grow, sections fill what budget is left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from schemas.passages import Passage, PassageChunk
from schemas.settings import RetrievalSettings
from services.retrieval.diversify import ScoredChunk
from services.retrieval.passage_text import background_passage, estimated_tokens, passage_of
from services.retrieval.version_chunks import VersionChunks, versions_of

MAX_PASSAGE_TOKENS = 1_024


class Stretch:
    """Consecutive chunks low..high of one version that will be one passage, at the rank of its best hit."""

    def __init__(self, version: VersionChunks, position: int, hit: ScoredChunk, summary: str | None) -> None:
        self.version = version
        self.low = self.high = position
        self.hits = [hit]
        self.summary = summary

    @property
    def chunks(self) -> list[PassageChunk]:
        return self.version.chunks[self.low : self.high + 1]

    @property
    def chars(self) -> int:
        return sum(len(chunk.text) for chunk in self.chunks)

    @property
    def tokens(self) -> int:
        return sum(estimated_tokens(chunk) for chunk in self.chunks)

    def neighbours(self) -> list[int]:
        """Positions that would prolong it, those of the hit's own section first, the following before the preceding."""
        found = []
        if self.version.adjacent(self.high):
            found.append(self.high + 1)
        if self.low > 0 and self.version.adjacent(self.low - 1):
            found.append(self.low - 1)
        section = self.version.section(self.hits[0].chunk)
        return sorted(found, key=lambda position: not section(self.version.chunks[position]))

    def take(self, position: int) -> None:
        self.low, self.high = min(self.low, position), max(self.high, position)


def assemble(
    hits: Sequence[ScoredChunk], siblings: Iterable[PassageChunk], settings: RetrievalSettings
) -> list[Passage]:
    """Passages numbered from 1 in the order of `hits`, at most `passages` of them, within `context_tokens`.

    `siblings` are other live chunks of the hits' versions (neighbours, sections), as many as the store cares to give:
    a chunk that is not among them is never made up. The first passage is kept even when it alone breaks the budget.
    A summary hit stands for the text that follows it; without any it becomes background, with `n` = 0, never cited.
    """
    versions = versions_of([hit.chunk for hit in hits], siblings)
    stretches, background = _stretches(hits, versions)
    chosen: list[Stretch] = []
    left = settings.context_tokens
    for stretch in stretches:
        if len(chosen) == settings.passages:
            break
        if stretch.tokens > left and chosen:
            continue
        chosen.append(stretch)
        left -= stretch.tokens
    for stretch in chosen:
        if stretch.chars < settings.grow_below_chars:
            left -= _grow(stretch, chosen, settings.grow_to_chars, left)
    for stretch in chosen:
        left -= _fill_section(stretch, chosen, left)
    numbered = [
        passage_of(number, stretch.chunks, stretch.hits, stretch.summary)
        for number, stretch in enumerate(_joined(chosen), start=1)
    ]
    room = max(0, settings.passages - len(numbered))
    return numbered + [background_passage(hit) for hit in background[:room]]


def _stretches(
    hits: Sequence[ScoredChunk], versions: dict[tuple[str, int], VersionChunks]
) -> tuple[list[Stretch], list[ScoredChunk]]:
    """One stretch per hit, hits beside each other joined into the better-ranked one."""
    stretches: list[Stretch] = []
    background: list[ScoredChunk] = []
    for hit in hits:
        version = versions[hit.chunk.document_id, hit.chunk.document_version]
        position = version.position_of(hit.chunk)
        if position is None:
            background.append(hit)
            continue
        summary = None if hit.chunk.citable else hit.chunk.text
        own = Stretch(version, position, hit, summary)
        stretches = _joined([*stretches, own])
    return stretches, background


def _joined(stretches: Sequence[Stretch]) -> list[Stretch]:
    """Touching or overlapping stretches become one, as long as it stays below MAX_PASSAGE_TOKENS."""
    kept: list[Stretch] = []
    for stretch in stretches:
        into = next((other for other in kept if _touch(other, stretch)), None)
        if into is None:
            kept.append(stretch)
            continue
        into.take(stretch.low)
        into.take(stretch.high)
        into.hits.extend(stretch.hits)
        into.summary = into.summary or stretch.summary
    return kept if len(kept) == len(stretches) else _joined(kept)  # one that closes a gap may make two others touch


def _touch(left: Stretch, right: Stretch) -> bool:
    if left.version is not right.version:
        return False
    first, second = (left, right) if left.low <= right.low else (right, left)
    if second.low <= first.high:
        return True
    beside = second.low == first.high + 1 and first.version.adjacent(first.high)
    return beside and left.tokens + right.tokens <= MAX_PASSAGE_TOKENS


def _taken(stretches: Sequence[Stretch], version: VersionChunks, position: int) -> bool:
    return any(other.version is version and other.low <= position <= other.high for other in stretches)


def _grow(stretch: Stretch, all_stretches: Sequence[Stretch], to_chars: int, budget: int) -> int:
    """Takes neighbours while the whole stays within `to_chars` and the budget; gives the tokens used."""
    used = 0
    while True:
        for position in stretch.neighbours():
            chunk = stretch.version.chunks[position]
            fits = stretch.chars + len(chunk.text) <= to_chars and used + estimated_tokens(chunk) <= budget
            if fits and not _taken(all_stretches, stretch.version, position):
                stretch.take(position)
                used += estimated_tokens(chunk)
                break
        else:
            return used


def _fill_section(stretch: Stretch, all_stretches: Sequence[Stretch], budget: int) -> int:
    """Takes the rest of the hit's section, nearest first, as far as the budget goes; gives the tokens used."""
    used = 0
    in_section = stretch.version.section(stretch.hits[0].chunk)
    while True:
        for position in stretch.neighbours():
            chunk = stretch.version.chunks[position]
            cost = estimated_tokens(chunk)
            fits = used + cost <= budget and stretch.tokens + cost <= MAX_PASSAGE_TOKENS
            if fits and in_section(chunk) and not _taken(all_stretches, stretch.version, position):
                stretch.take(position)
                used += cost
                break
        else:
            return used
