"""The one retrieval path: scope, recall, fuse, verify, diversify. Search, answers and agents all come through here."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from schemas.access import Access, Actor
from schemas.errors import Failure, NotFound
from schemas.index_records import IndexFilter
from schemas.passages import FusedHit, PassageChunk
from schemas.search import Leg, SearchFilters
from schemas.settings import RetrievalSettings
from services.access.access_filter import index_filter
from services.access.load_access import load_access
from services.retrieval.diversify import ScoredChunk, diversify
from services.retrieval.recall import Query, Recall, Recalled
from services.stores import live_chunks, spaces_store
from services.stores.database import Database, Transaction
from services.stores.vector_index import StoredVector, VectorIndex

StoredVectors = Mapping[str, StoredVector]
MOST_RECALLED = 3_200
"""Over-fetching doubles until the limit is met; past this many per leg the rest is given up as degraded."""


@dataclass
class Found:
    """Verified chunks in final order, with every score they were given."""

    query: Query
    spaces: list[str]
    hits: list[ScoredChunk]
    legs: list[Leg] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)
    scores: dict[str, dict[str, float]] = field(default_factory=dict)


class Finding:
    """Gives verified chunks; whatever an index claims, Postgres has the last word."""

    def __init__(self, database: Database, recall: Recall, vectors: VectorIndex, settings: RetrievalSettings) -> None:
        self._database = database
        self._recall = recall
        self._vectors = vectors
        self._settings = settings

    async def find(
        self, actor: Actor, text: str, spaces: Sequence[str] | None, filters: SearchFilters | None, limit: int
    ) -> Found:
        """At most `limit` chunks that the actor may read at this moment. Unknown and hidden spaces are NotFound."""
        query, (flt, space_ids) = await asyncio.gather(self._recall.query(text), self._scope(actor, spaces, filters))
        if flt.matches_nothing:
            return Found(query, space_ids, [], [Leg(name=name, hits=0, ms=0) for name in ("vector", "keyword")])
        recalled, live, vectors = await self._recall_and_verify(actor, query, flt, limit)
        ranked = [hit for hit in recalled.hits if hit.chunk_id in live]
        hits = await self._diversify(ranked, live, vectors, limit)
        scores = {hit.chunk_id: {"fused": hit.score, **hit.scores} for hit in recalled.hits}
        return Found(query, space_ids, hits, _counted(recalled, live), recalled.degraded, scores)

    async def _scope(
        self, actor: Actor, spaces: Sequence[str] | None, filters: SearchFilters | None
    ) -> tuple[IndexFilter, list[str]]:
        async with self._database.begin(actor.tenant) as transaction:
            access = await load_access(transaction, actor)
            if access is None:
                raise NotFound("This key has no rights any more.")
            ids = await _space_ids(transaction, access, spaces) if spaces else list(access.spaces)
        return index_filter(access, ids, filters), ids

    async def _recall_and_verify(
        self, actor: Actor, query: Query, flt: IndexFilter, limit: int
    ) -> tuple[Recalled, Mapping[str, PassageChunk], StoredVectors]:
        """Over-fetches until `limit` chunks stand the verifying query or the legs have no more.

        The vectors that diversity will want are fetched meanwhile: nearly always the best that were found may be shown.
        """
        depth, repeated = max(self._settings.recall, limit), False
        while True:
            recalled = await self._recall.find(query, flt, depth)
            ids = [hit.chunk_id for hit in recalled.hits]
            (live, superseded), vectors = await asyncio.gather(
                self._verified(actor, ids, flt), self._stored_vectors(ids[: self._candidates(limit)])
            )
            if superseded and not repeated:
                repeated = True  # a newer version was published meanwhile: its chunks are in the indexes by now
                continue
            if len(live) >= limit or recalled.exhausted:
                return recalled, live, vectors
            if depth >= MOST_RECALLED:
                recalled.degraded.append(f"recall: fewer readable results than asked for among the best {depth}")
                return recalled, live, vectors
            depth = min(MOST_RECALLED, depth * 4)

    async def _verified(
        self, actor: Actor, ids: list[str], flt: IndexFilter
    ) -> tuple[Mapping[str, PassageChunk], bool]:
        """What may be shown now, and whether something found was of a version that has just been replaced."""
        async with self._database.begin(actor.tenant) as transaction:
            live = await live_chunks.verify(transaction, actor, ids, flt)
            dropped = [chunk for chunk in ids if chunk not in live]
            return live, bool(dropped) and await live_chunks.any_superseded(transaction, actor, dropped)

    def _candidates(self, limit: int) -> int:
        return max(limit * 2, self._settings.passages * 2)

    async def _diversify(
        self, ranked: list[FusedHit], live: Mapping[str, PassageChunk], vectors: StoredVectors, limit: int
    ) -> list[ScoredChunk]:
        """Marginal relevance over the best candidates. What collapsed as a near-duplicate fills up a short list."""
        best = ranked[: self._candidates(limit)]
        candidates = [ScoredChunk(live[hit.chunk_id], hit.score) for hit in best]
        if len(candidates) < 2:
            return candidates
        moved_up = [hit.chunk_id for hit in best if hit.chunk_id not in vectors]
        vectors = {**vectors, **await self._stored_vectors(moved_up)}
        chosen = diversify(
            candidates,
            vectors,
            diversity_lambda=self._settings.diversity_lambda,
            near_duplicate_jaccard=self._settings.near_duplicate_jaccard,
            limit=limit,
        )
        taken = {hit.chunk.chunk_id for hit in chosen}
        rest = [hit for hit in ranked if hit.chunk_id not in taken][: limit - len(chosen)]
        return [*chosen, *(ScoredChunk(live[hit.chunk_id], hit.score) for hit in rest)]

    async def _stored_vectors(self, ids: Sequence[str]) -> StoredVectors:
        """None when the vector engine is away: its leg is named as degraded then, and words alone tell what is alike."""
        if not ids:
            return {}
        try:
            return await self._vectors.vectors(ids)
        except Failure:
            return {}


async def _space_ids(transaction: Transaction, access: Access, named: Sequence[str]) -> list[str]:
    """An id among those just read needs no second look; a name does. Unknown and hidden spaces are NotFound."""
    return [
        name if name in access.spaces else str((await spaces_store.resolve(transaction, access.actor, name))["id"])
        for name in named
    ]


def _counted(recalled: Recalled, live: Mapping[str, PassageChunk]) -> list[Leg]:
    """The legs with the hits that stood the verifying query: a count of others would tell that they are there."""
    standing = [hit.scores for hit in recalled.hits if hit.chunk_id in live]
    return [leg.model_copy(update={"hits": sum(leg.name in scores for scores in standing)}) for leg in recalled.legs]
