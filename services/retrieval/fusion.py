"""One ranking out of several legs' rankings, with scores in [0, 1].

`fuse_min_max` adds each ranking's min-max scaled scores (Bruch et al., "An Analysis of Fusion Functions for Hybrid
Retrieval", 2023); `fuse_ranks` is weighted reciprocal rank fusion (Cormack et al., SIGIR 2009) divided by the best
possible sum. A ranking without hits takes no part in either; a single ranking keeps its order and scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from schemas.passages import FusedHit, LegHit, LegRanking
from schemas.settings import RetrievalSettings

RANK_VECTOR_WEIGHT = 0.7


def fuse(rankings: Sequence[LegRanking], settings: RetrievalSettings) -> list[FusedHit]:
    """The configured strategy. `weight` of each ranking is set by `leg_weight`."""
    if settings.fusion == "rank":
        return fuse_ranks(rankings, settings.rank_constant)
    return fuse_min_max(rankings)


def leg_weight(leg: str, settings: RetrievalSettings) -> float:
    """Keyword gets what the vector leg leaves; legs that are vectors of something else count as vectors."""
    vector = settings.vector_weight if settings.fusion == "min_max" else RANK_VECTOR_WEIGHT
    return 1 - vector if leg == "keyword" else vector


def fuse_min_max(rankings: Sequence[LegRanking]) -> list[FusedHit]:
    return _fuse(rankings, _min_max)


def fuse_ranks(rankings: Sequence[LegRanking], rank_constant: int = 60) -> list[FusedHit]:
    def by_rank(hits: list[LegHit]) -> list[float]:
        return [(rank_constant + 1) / (rank_constant + rank) for rank in range(1, len(hits) + 1)]

    return _fuse(rankings, by_rank)


def collapse(hits: Sequence[LegHit]) -> list[LegHit]:
    """Each chunk once, at its best rank."""
    first: dict[str, LegHit] = {}
    for hit in hits:
        first.setdefault(hit.chunk_id, hit)
    return list(first.values())


def _fuse(rankings: Sequence[LegRanking], scale: Callable[[list[LegHit]], list[float]]) -> list[FusedHit]:
    """`scale` gives each hit of a ranking a share in [0, 1]; shares are averaged over rankings by their weights."""
    taking_part = [(ranking, collapse(ranking.hits)) for ranking in rankings if ranking.hits]
    if len(taking_part) == 1:
        ranking, hits = taking_part[0]
        return [FusedHit(chunk_id=hit.chunk_id, score=hit.score, scores={ranking.leg: hit.score}) for hit in hits]
    sums: dict[str, float] = {}
    raw: dict[str, dict[str, float]] = {}
    total = sum(ranking.weight * ranking.query_weight for ranking, _ in taking_part)
    for ranking, hits in taking_part:
        weight = ranking.weight * ranking.query_weight
        for hit, share in zip(hits, scale(hits), strict=True):
            sums[hit.chunk_id] = sums.get(hit.chunk_id, 0.0) + weight * share
            scores = raw.setdefault(hit.chunk_id, {})
            scores[ranking.leg] = max(hit.score, scores.get(ranking.leg, hit.score))
    ordered = sorted(sums, key=lambda chunk_id: -sums[chunk_id])  # stable: ties keep the order of the first leg
    return [FusedHit(chunk_id=key, score=_bounded(sums[key], total), scores=raw[key]) for key in ordered]


def _bounded(value: float, total: float) -> float:
    return min(1.0, max(0.0, value / total)) if total > 0 else 0.0


def _min_max(hits: list[LegHit]) -> list[float]:
    low = min(hit.score for hit in hits)
    spread = max(hit.score for hit in hits) - low
    if spread <= 0:
        return [1.0] * len(hits)
    return [(hit.score - low) / spread for hit in hits]
