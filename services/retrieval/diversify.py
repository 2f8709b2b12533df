"""Maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998), then near-duplicates collapse.

Input order is by relevance. Vectors are the stored ones; a hit without a vector is like no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from schemas.passages import PassageChunk, PassageDuplicate
from services.retrieval.near_duplicates import group_near_duplicates

Vector = NDArray[np.float32]


@dataclass(frozen=True)
class ScoredChunk:
    """A verified chunk, its score, and the near-identical chunks it stands for."""

    chunk: PassageChunk
    score: float
    duplicates: tuple[PassageDuplicate, ...] = field(default=())


def diversify(
    hits: Sequence[ScoredChunk],
    vectors: Mapping[str, Vector],
    *,
    diversity_lambda: float = 0.7,
    near_duplicate_jaccard: float = 0.85,
    limit: int | None = None,
) -> list[ScoredChunk]:
    """At most `limit` hits, reordered by marginal relevance, each keeping the citations of those it swallowed."""
    order = marginal_relevance_order(hits, vectors, diversity_lambda)
    return collapse_near_duplicates([hits[i] for i in order], near_duplicate_jaccard)[:limit]


def marginal_relevance_order(
    hits: Sequence[ScoredChunk], vectors: Mapping[str, Vector], diversity_lambda: float
) -> list[int]:
    """Positions in the order chosen: argmax of lambda x relevance - (1 - lambda) x closest cosine to the chosen."""
    if not hits:
        return []
    relevance = _relevance(hits)
    similarity = _cosines(hits, vectors)
    closest = np.zeros(len(hits))
    remaining = np.ones(len(hits), dtype=bool)
    order: list[int] = []
    for _ in hits:
        marginal = diversity_lambda * relevance - (1 - diversity_lambda) * closest
        best = int(np.argmax(np.where(remaining, marginal, -np.inf)))
        order.append(best)
        remaining[best] = False
        closest = np.maximum(closest, similarity[best])
    return order


def _relevance(hits: Sequence[ScoredChunk]) -> NDArray[np.float64]:
    """Scores of one leg alone may be unbounded (BM25): brought to a top of 1 so lambda keeps its meaning."""
    scores = np.array([hit.score for hit in hits], dtype=np.float64)
    return scores / max(1.0, float(scores.max()))


def _cosines(hits: Sequence[ScoredChunk], vectors: Mapping[str, Vector]) -> NDArray[np.float64]:
    known = [vectors.get(hit.chunk.chunk_id) for hit in hits]
    dimensions = next((len(vector) for vector in known if vector is not None), 1)
    nothing = np.zeros(dimensions, dtype=np.float32)
    matrix = np.stack([nothing if vector is None else vector for vector in known]).astype(np.float64)
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    unit = np.divide(matrix, norms, out=np.zeros_like(matrix), where=norms > 0)
    return np.asarray(unit @ unit.T)


def collapse_near_duplicates(hits: Sequence[ScoredChunk], threshold: float = 0.85) -> list[ScoredChunk]:
    """The first of each group of near-identical texts; the others become its `duplicates`."""
    kept = []
    for group in group_near_duplicates([hit.chunk.text for hit in hits], threshold):
        leader = hits[group[0]]
        swallowed = [d for i in group[1:] for d in (_duplicate_of(hits[i].chunk), *hits[i].duplicates)]
        kept.append(ScoredChunk(leader.chunk, leader.score, (*leader.duplicates, *swallowed)))
    return kept


def _duplicate_of(chunk: PassageChunk) -> PassageDuplicate:
    return PassageDuplicate(
        document_id=chunk.document_id, document_version=chunk.document_version, chunk_id=chunk.chunk_id,
        title=chunk.title, start=chunk.start, end=chunk.end,
    )  # fmt: skip
