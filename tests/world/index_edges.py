"""The real indexes with a hook in front of every search, so that a test can act between recall and verification."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from schemas.index_records import IndexFilter, KeywordQuery, ScoredChunk
from services.stores.qdrant_edge_vectors import QdrantEdgeVectors
from services.stores.tantivy_keywords import TantivyKeywords

Hook = Callable[[], Awaitable[None]]


class HookedVectors(QdrantEdgeVectors):
    """`after_search` runs once, after the next search has its hits and before anybody sees them."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.after_search: Hook | None = None

    async def search(self, vector: Sequence[float], flt: IndexFilter, limit: int, model: str) -> list[ScoredChunk]:
        hits = await super().search(vector, flt, limit, model)
        await _once(self)
        return hits


class HookedKeywords(TantivyKeywords):
    """As `HookedVectors`."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.after_search: Hook | None = None

    async def search(self, query: KeywordQuery, flt: IndexFilter, limit: int) -> list[ScoredChunk]:
        hits = await super().search(query, flt, limit)
        await _once(self)
        return hits


async def _once(index: HookedVectors | HookedKeywords) -> None:
    hook, index.after_search = index.after_search, None
    if hook is not None:
        await hook()
