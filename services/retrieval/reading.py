"""A document's text as citable passages, from a place in it onwards: what `read_document` gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from schemas.access import Actor
from schemas.passages import Passage, PassageChunk
from services.retrieval.diversify import ScoredChunk
from services.retrieval.passage_text import estimated_tokens, passage_of
from services.stores import live_chunks
from services.stores.database import Transaction

PASSAGE_TOKENS = 1_024
MOST_CHUNKS = 500


@dataclass(frozen=True)
class Reading:
    """Passages in the text's order. `goes_on_at` is the code point where the text that did not fit begins, null at the end."""

    passages: list[Passage]
    goes_on_at: int | None


async def read(
    transaction: Transaction, actor: Actor, document_id: str, start: int, end: int, max_tokens: int
) -> Reading:
    """Whole chunks that touch text[start:end], up to `max_tokens` of them, one at least."""
    chunks = await live_chunks.of_document(transaction, actor, document_id, start, end, MOST_CHUNKS + 1)
    taken: list[PassageChunk] = []
    left = max_tokens
    for chunk in chunks[:MOST_CHUNKS]:
        left -= estimated_tokens(chunk)
        if taken and left < 0:
            break
        taken.append(chunk)
    rest = chunks[len(taken) :]
    goes_on_at = max(rest[0].start or 0, start + 1) if rest else None
    return Reading([_passage(n, part) for n, part in enumerate(_parts(taken), start=1)], goes_on_at)


def _parts(chunks: Sequence[PassageChunk]) -> list[list[PassageChunk]]:
    """Neighbouring chunks together, a part for about every page of text."""
    parts: list[list[PassageChunk]] = []
    tokens = 0
    for chunk in chunks:
        cost = estimated_tokens(chunk)
        if not parts or tokens + cost > PASSAGE_TOKENS:
            parts.append([])
            tokens = 0
        parts[-1].append(chunk)
        tokens += cost
    return parts


def _passage(n: int, chunks: list[PassageChunk]) -> Passage:
    return passage_of(n, chunks, [ScoredChunk(chunks[0], 1.0)], None)
