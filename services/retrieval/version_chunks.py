"""The known chunks of one document version, in text order, and which of them stand beside each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from schemas.passages import PassageChunk

MAX_GAP_CHARS = 200


class VersionChunks:
    """`chunks` are the citable ones by ordinal; summaries only fill ordinals."""

    def __init__(self, known: Iterable[PassageChunk]) -> None:
        by_ordinal = {chunk.ordinal: chunk for chunk in known}
        self._summary_ordinals = {ordinal for ordinal, chunk in by_ordinal.items() if not chunk.citable}
        self.chunks = [by_ordinal[o] for o in sorted(by_ordinal) if o not in self._summary_ordinals]
        self._positions = {chunk.ordinal: position for position, chunk in enumerate(self.chunks)}

    def position_of(self, chunk: PassageChunk) -> int | None:
        """Where a chunk stands; for a summary, where the text it sums up begins, None if that is not known."""
        if chunk.citable:
            return self._positions[chunk.ordinal]
        following = [position for ordinal, position in self._positions.items() if ordinal > chunk.ordinal]
        if not following:
            return None
        first = min(following)
        between = range(chunk.ordinal + 1, self.chunks[first].ordinal)
        return first if all(ordinal in self._summary_ordinals for ordinal in between) else None

    def adjacent(self, position: int) -> bool:
        """Whether the chunk at position + 1 is known and follows the one at `position` in the text."""
        if position + 1 >= len(self.chunks):
            return False
        left, right = self.chunks[position], self.chunks[position + 1]
        missing = (o for o in range(left.ordinal + 1, right.ordinal) if o not in self._summary_ordinals)
        if next(missing, None) is not None or left.end is None or right.start is None or right.end is None:
            return False
        return right.start - left.end <= MAX_GAP_CHARS and right.end > left.end

    def section(self, hit: PassageChunk) -> Callable[[PassageChunk], bool]:
        """Whether a chunk lies in the hit's parent section; without parents, under the same headings."""
        low, high = hit.parent_start, hit.parent_end

        def inside(chunk: PassageChunk) -> bool:
            if low is None or high is None:
                return chunk.heading_path == hit.heading_path
            return chunk.start is not None and chunk.end is not None and low <= chunk.start and chunk.end <= high

        return inside


def versions_of(hits: Sequence[PassageChunk], siblings: Iterable[PassageChunk]) -> dict[tuple[str, int], VersionChunks]:
    """By (document id, version), for the hits' versions only."""
    known: dict[tuple[str, int], list[PassageChunk]] = {(hit.document_id, hit.document_version): [] for hit in hits}
    for chunk in (*siblings, *hits):  # a hit's own row wins over a sibling's
        own = known.get((chunk.document_id, chunk.document_version))
        if own is not None:
            own.append(chunk)
    return {key: VersionChunks(chunks) for key, chunks in known.items()}
