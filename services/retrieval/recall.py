"""Both legs of recall, side by side. A leg that fails takes no part and is named; both failing is an error."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from schemas.errors import EngineDown, Failure
from schemas.index_records import IndexFilter, KeywordQuery, ScoredChunk
from schemas.passages import FusedHit, LegHit, LegRanking, QueryTokens
from schemas.search import Leg
from schemas.settings import RetrievalSettings
from services.gateways.embedding_model import EmbeddingModel
from services.retrieval.analyser import analyse_query
from services.retrieval.fusion import fuse, leg_weight
from services.stores.keyword_index import KeywordIndex
from services.stores.vector_index import VectorIndex


@dataclass(frozen=True)
class Query:
    """A question in the two forms that the legs ask with. `vector_error` tells why there is no vector."""

    text: str
    tokens: QueryTokens
    vector: NDArray[np.float32] | None
    vector_error: str | None = None


@dataclass
class Recalled:
    """Fused hits, best first. `exhausted`: no leg has more to give."""

    hits: list[FusedHit]
    legs: list[Leg]
    exhausted: bool
    degraded: list[str] = field(default_factory=list)


class Recall:
    """Asks both indexes at once; knows nothing of rights beyond the filter it is given."""

    def __init__(
        self, vectors: VectorIndex, keywords: KeywordIndex, model: EmbeddingModel, settings: RetrievalSettings
    ) -> None:
        self._vectors = vectors
        self._keywords = keywords
        self._model = model
        self._settings = settings

    async def query(self, text: str) -> Query:
        tokens = analyse_query(text)
        try:
            return Query(text, tokens, await self._model.embed_query(text))
        except Failure as failure:
            return Query(text, tokens, None, failure.detail)

    async def find(self, query: Query, flt: IndexFilter, limit: int) -> Recalled:
        """Top `limit` of each leg, fused. EngineDown when neither leg could answer."""
        vector, keyword = await asyncio.gather(
            _timed("vector", self._by_vector(query, flt, limit)), _timed("keyword", self._by_words(query, flt, limit))
        )
        legs = [vector.leg, keyword.leg]
        degraded = [f"{leg.name}: {leg.error}" for leg in legs if leg.error]
        if len(degraded) == len(legs):
            raise EngineDown("search", "; ".join(degraded))
        rankings = [
            LegRanking(
                leg=found.leg.name,
                hits=[LegHit(chunk_id=hit.id, score=hit.score) for hit in found.hits],
                weight=leg_weight(found.leg.name, self._settings),
            )
            for found in (vector, keyword)
        ]
        exhausted = all(len(found.hits) < limit for found in (vector, keyword))
        return Recalled(fuse(rankings, self._settings), legs, exhausted, degraded)

    async def _by_vector(self, query: Query, flt: IndexFilter, limit: int) -> list[ScoredChunk]:
        if query.vector is None:
            raise EngineDown("embedding model", query.vector_error or "The embedding model does not answer")
        return await self._vectors.search(query.vector.tolist(), flt, limit, self._model.name)

    async def _by_words(self, query: Query, flt: IndexFilter, limit: int) -> list[ScoredChunk]:
        if query.tokens.empty:
            return []
        tokens = [*query.tokens.tokens, *query.tokens.variants]
        words = KeywordQuery(tokens=tokens, exact=query.tokens.exact, title_weight=self._settings.title_weight)
        return await self._keywords.search(words, flt, limit)


@dataclass(frozen=True)
class _Found:
    leg: Leg
    hits: Sequence[ScoredChunk]


async def _timed(name: str, search: Awaitable[list[ScoredChunk]]) -> _Found:
    started = time.perf_counter()
    hits: list[ScoredChunk] = []
    error = None
    try:
        hits = await search
    except Failure as failure:
        error = failure.detail
    ms = (time.perf_counter() - started) * 1_000
    return _Found(Leg(name=name, hits=len(hits), ms=round(ms, 2), error=error), hits)
