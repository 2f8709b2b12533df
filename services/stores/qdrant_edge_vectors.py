"""Vectors in Qdrant's embedded engine: one shard in one folder, for one process.

- Every call into the engine holds the interpreter lock to its end, so writes go in small batches and flushes are rare.
- A write is in the write-ahead log when `update` returns: it survives kill -9. `flush` moves it to the segments, which
  keeps the log short and the next start quick; it takes 0.2 s and more, so it runs once in FLUSH_POINTS points.
- The dimension is in the folder's name (`384d`), so it cannot disagree with what is inside.
- `optimize` is never called: under about 100,000 chunks a flat search with keyword indexes is quick, and optimising
  would stop the process for seconds.
"""

from __future__ import annotations

import asyncio
import fcntl
import shutil
import threading
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, TypeVar

import qdrant_edge as edge

from schemas.errors import EngineDown
from schemas.index_records import DocumentPage, DocumentState, IndexedChunk, IndexedDocument, IndexFilter, ScoredChunk
from services.stores.index_conditions import KEYWORD_FIELDS, AnyOf, Condition, conditions, of_document, payload
from services.stores.vector_index import (
    EmbeddingDimensionChanged,
    StoredVector,
    as_floats,
    one_dimension,
    stored_vector,
)

BATCH_POINTS = 64
FLUSH_POINTS = 16_384
SCROLL_POINTS = 1_000
MAX_MODELS = 100

T = TypeVar("T")


class QdrantEdgeVectors:
    """VectorIndex on qdrant-edge. `open` raises EngineDown when another process holds the folder."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock: IO[str] | None = None
        self._shard: edge.EdgeShard | None = None
        self._dimension: int | None = None
        self._unflushed = 0
        self._writing = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None

    async def open(self) -> None:
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="vectors")
        await self._run(self._open)

    async def close(self) -> None:
        if self._threads is None:
            return
        await self._run(self._close)
        self._threads.shutdown()
        self._threads = None

    async def ping(self) -> None:
        await self._run(lambda: self._shard.info() if self._shard else None)

    async def upsert(self, points: Sequence[IndexedChunk]) -> None:
        if points:
            await self._run(lambda: self._upsert(points))

    async def search(self, vector: Sequence[float], flt: IndexFilter, limit: int, model: str) -> list[ScoredChunk]:
        shard = self._opened()
        if shard is None or flt.matches_nothing:
            return []
        if len(vector) != self._dimension:
            raise EmbeddingDimensionChanged(self._dimension or 0, len(vector), model)
        request = edge.QueryRequest(
            limit=limit,
            query=edge.Query.Nearest(as_floats(vector)),
            filter=_filter([*conditions(flt), AnyOf("model", [model])]),
            with_payload=False,
            with_vector=False,
        )
        found = await self._run(lambda: shard.query(request))
        return [ScoredChunk(str(point.id), point.score) for point in found]

    async def vectors(self, ids: Sequence[str]) -> dict[str, StoredVector]:
        shard = self._opened()
        if shard is None or not ids:
            return {}

        def retrieve() -> dict[str, StoredVector]:
            records = shard.retrieve(list(ids), with_payload=False, with_vector=True)
            return {str(record.id): stored_vector(record.vector) for record in records}

        return await self._run(retrieve)

    async def delete_ids(self, tenant: str, ids: Sequence[str]) -> int:
        if not ids:
            return 0
        points = edge.HasIdCondition(point_ids={uuid.UUID(chunk) for chunk in ids})
        return await self._run(lambda: self._delete(_filter([AnyOf("tenant", [tenant])], points)))

    async def delete_document(self, tenant: str, document: str) -> int:
        return await self._run(lambda: self._delete(_filter(of_document(tenant, document))))

    async def count_document(self, tenant: str, document: str) -> int:
        request = edge.CountRequest(exact=True, filter=_filter(of_document(tenant, document)))
        return await self._run(lambda: self._shard.count(request) if self._shard else 0)

    async def document_ids(self, tenant: str, document: str) -> set[str]:
        return set((await self.document_state(tenant, document)).ids)

    async def document_state(self, tenant: str, document: str) -> DocumentState:
        records = await self._run(lambda: self._records(_filter(of_document(tenant, document))))
        payloads = [record.payload or {} for record in records]
        return DocumentState(
            ids=tuple(sorted(str(record.id) for record in records)),
            access_versions=tuple(sorted({int(fields["access_version"]) for fields in payloads})),
            models=tuple(sorted({str(fields["model"]) for fields in payloads})),
        )

    async def set_readers(self, tenant: str, document: str, readers: Sequence[str], access_version: int) -> None:
        not_later = edge.FieldCondition(key="access_version", range=edge.RangeFloat(lte=access_version))
        fields = {"readers": list(readers), "access_version": access_version}
        await self._set_payload(_filter(of_document(tenant, document), not_later), fields)

    async def set_version(self, tenant: str, document: str, media_type: str, updated_at: int) -> None:
        await self._set_payload(
            _filter(of_document(tenant, document)), {"media_type": media_type, "updated_at": updated_at}
        )

    async def _set_payload(self, points: edge.Filter, fields: dict[str, Any]) -> None:
        operation = edge.UpdateOperation.set_payload_by_filter(points, fields)
        await self._run(lambda: self._update(operation))

    async def list_documents(self, after: str | None = None, limit: int = SCROLL_POINTS) -> DocumentPage:
        shard = self._opened()
        if shard is None:
            return DocumentPage((), None)
        request = edge.ScrollRequest(offset=after, limit=limit, with_payload=["tenant", "document"], with_vector=False)
        records, following = await self._run(lambda: shard.scroll(request))
        payloads = [record.payload or {} for record in records]
        documents = {IndexedDocument(str(fields["tenant"]), str(fields["document"])) for fields in payloads}
        return DocumentPage(tuple(sorted(documents)), None if following is None else str(following))

    async def model_counts(self) -> dict[str, int]:
        shard = self._opened()
        if shard is None:
            return {}
        request = edge.FacetRequest(key="model", limit=MAX_MODELS, exact=True)
        found = await self._run(lambda: shard.facet(request))
        return {str(hit.value): int(hit.count) for hit in found.hits}

    async def clear(self) -> None:
        await self._run(self._clear)

    def _opened(self) -> edge.EdgeShard | None:
        """Null before the first write. An index that is not open is no empty one."""
        if self._threads is None:
            raise _not_open()
        return self._shard

    async def _run(self, work: Callable[[], T]) -> T:
        if self._threads is None:
            raise _not_open()
        return await asyncio.get_running_loop().run_in_executor(self._threads, _name_failure, work)

    # Everything below runs in a thread.

    def _open(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        lock = (self._directory / "lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise EngineDown(
                "qdrant",
                f"The vector index in {self._directory} is held by another process: stop that one, "
                "or set PERDURE_QDRANT_URL to share a Qdrant server",
            ) from None
        self._lock = lock
        shutil.rmtree(self._directory / "new", ignore_errors=True)
        for folder in self._directory.glob("[0-9]*d"):
            self._shard = edge.EdgeShard.load(str(folder))
            self._dimension = int(folder.name.removesuffix("d"))

    def _close(self) -> None:
        with self._writing:
            if self._shard is not None:
                self._shard.flush()
                self._shard.close()
            self._shard = self._dimension = None
            if self._lock is not None:
                self._lock.close()
                self._lock = None

    def _upsert(self, points: Sequence[IndexedChunk]) -> None:
        with self._writing:
            dimension = one_dimension(points, self._dimension)
            shard = self._shard or self._create(dimension)
            for start in range(0, len(points), BATCH_POINTS):
                batch = [_point(chunk) for chunk in points[start : start + BATCH_POINTS]]
                shard.update(edge.UpdateOperation.upsert_points(batch))
            self._unflushed += len(points)
            if self._unflushed >= FLUSH_POINTS:
                shard.flush()
                self._unflushed = 0

    def _create(self, dimension: int) -> edge.EdgeShard:
        """Made whole beside its place and then moved there, so a kill leaves all of it or nothing."""
        making, folder = self._directory / "new", self._directory / f"{dimension}d"
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir()
        parameters = edge.EdgeVectorParams(size=dimension, distance=edge.Distance.Cosine)
        shard = edge.EdgeShard.create(str(making), edge.EdgeConfig(vectors=parameters))
        for field in (*KEYWORD_FIELDS, "model"):
            shard.update(edge.UpdateOperation.create_field_index(field, edge.PayloadSchemaType.Keyword))
        shard.update(edge.UpdateOperation.create_field_index("updated_at", edge.PayloadSchemaType.Integer))
        shard.flush()
        shard.close()
        making.rename(folder)
        self._shard, self._dimension = edge.EdgeShard.load(str(folder)), dimension
        return self._shard

    def _update(self, operation: edge.UpdateOperation) -> None:
        with self._writing:
            if self._shard is not None:
                self._shard.update(operation)

    def _delete(self, matching: edge.Filter) -> int:
        with self._writing:
            if self._shard is None:
                return 0
            count = self._shard.count(edge.CountRequest(exact=True, filter=matching))
            if count:
                self._shard.update(edge.UpdateOperation.delete_points_by_filter(matching))
            return count

    def _records(self, matching: edge.Filter) -> list[edge.Record]:
        records: list[edge.Record] = []
        following: edge.PointId | None = None
        while self._shard is not None:
            request = edge.ScrollRequest(
                offset=following,
                limit=SCROLL_POINTS,
                filter=matching,
                with_payload=["access_version", "model"],
                with_vector=False,
            )
            page, following = self._shard.scroll(request)
            records.extend(page)
            if following is None:
                break
        return records

    def _clear(self) -> None:
        with self._writing:
            if self._shard is not None:
                self._shard.close()
            self._shard = self._dimension = None
            self._unflushed = 0
            for folder in self._directory.glob("[0-9]*d"):
                shutil.rmtree(folder)


def _not_open() -> EngineDown:
    return EngineDown("qdrant", "The embedded vector index is not open")


def _name_failure(work: Callable[[], T]) -> T:
    """The engine raises bare `Exception` and nothing else of its own; the rest is not the engine's."""
    try:
        return work()
    except Exception as error:
        if type(error) is Exception or isinstance(error, OSError):
            raise EngineDown("qdrant", f"The embedded vector index failed: {error}") from error
        raise


def _point(chunk: IndexedChunk) -> edge.Point:
    return edge.Point(chunk.id, as_floats(chunk.vector), {**payload(chunk), "model": chunk.model})


def _filter(wanted: Sequence[Condition], *more: edge.ConditionType) -> edge.Filter:
    return edge.Filter(must=[*(_condition(condition) for condition in wanted), *more])


def _condition(condition: Condition) -> edge.FieldCondition:
    if isinstance(condition, AnyOf):
        return edge.FieldCondition(key=condition.field, match=edge.MatchAny(any=condition.values))
    return edge.FieldCondition(key=condition.field, range=edge.RangeFloat(gte=condition.start, lt=condition.before))
