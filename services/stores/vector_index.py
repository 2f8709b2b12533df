"""The vector index port: nearest chunks by cosine, under a filter that every search applies first.

One index holds vectors of one dimension. Every point carries its embedding model as a keyword, and a search names the
model of its query, so vectors of two models are never compared. A point's id is its chunk's id: embedding a chunk with
another model replaces its old vector.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from schemas.errors import PermanentFailure
from schemas.index_records import DocumentPage, DocumentState, IndexedChunk, IndexFilter, ScoredChunk

StoredVector = NDArray[np.float32]


class EmbeddingDimensionChanged(PermanentFailure):
    """The index was filled by a model of another dimension. Rebuilding the index is the remedy."""

    def __init__(self, indexed: int, given: int, model: str) -> None:
        super().__init__(
            "model_unavailable",
            f"The vector index holds vectors of {indexed} dimensions and {model} gives {given}: "
            "set the former embedding model again, or run `perdure rebuild --indexes`",
        )
        self.indexed, self.given, self.model = indexed, given, model

    def __reduce__(self) -> tuple[type, tuple[int, int, str]]:  # type: ignore[override]
        return type(self), (self.indexed, self.given, self.model)


class VectorIndex(Protocol):
    """Every call may raise EngineDown("qdrant") or TransientFailure; none of them retries.

    A write has returned when the next search sees it and a kill of any process does not lose it.
    """

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def upsert(self, points: Sequence[IndexedChunk]) -> None:
        """Write or replace points. Raises EmbeddingDimensionChanged before anything is written."""
        ...

    async def search(self, vector: Sequence[float], flt: IndexFilter, limit: int, model: str) -> list[ScoredChunk]:
        """The nearest `limit` points of this model that pass the filter, best first; score is the cosine."""
        ...

    async def vectors(self, ids: Sequence[str]) -> dict[str, StoredVector]:
        """Stored vectors at unit length, of the ids that are there. Ids come from hits that were already verified."""
        ...

    async def delete_ids(self, tenant: str, ids: Sequence[str]) -> int:
        """Remove these points of this tenant; how many there were."""
        ...

    async def delete_document(self, tenant: str, document: str) -> int: ...

    async def count_document(self, tenant: str, document: str) -> int: ...

    async def document_ids(self, tenant: str, document: str) -> set[str]: ...

    async def document_state(self, tenant: str, document: str) -> DocumentState: ...

    async def set_readers(self, tenant: str, document: str, readers: Sequence[str], access_version: int) -> None:
        """Change who may read. Points that already carry a later access version keep theirs."""
        ...

    async def set_version(self, tenant: str, document: str, media_type: str, updated_at: int) -> None:
        """Change what every point of the document tells of its version: those that a new version kept are older."""
        ...

    async def list_documents(self, after: str | None = None, limit: int = 1_000) -> DocumentPage:
        """Walk over the documents that the index knows, of all tenants, looking at `limit` points a page."""
        ...

    async def model_counts(self) -> dict[str, int]:
        """How many points each embedding model has here."""
        ...

    async def clear(self) -> None:
        """Forget everything, the dimension included."""
        ...

    async def ping(self) -> None:
        """Return when the engine answers."""
        ...


def as_floats(vector: Sequence[float] | bytes) -> list[float]:
    if isinstance(vector, bytes):
        return array("f", vector).tolist()
    return [float(value) for value in vector]


def stored_vector(given: Any) -> StoredVector:
    """As an engine gives it: a list of floats."""
    return np.asarray(given, dtype=np.float32)


def one_dimension(points: Iterable[IndexedChunk], expected: int | None) -> int:
    """The dimension of all these points, which must be `expected` when that is known."""
    for point in points:
        given = len(point.vector) // 4 if isinstance(point.vector, bytes) else len(point.vector)
        if not given or not point.model:
            raise ValueError(f"chunk {point.id} has no vector or no model")
        expected = expected or given
        if given != expected:
            raise EmbeddingDimensionChanged(expected, given, point.model)
    if expected is None:
        raise ValueError("no points")
    return expected
