"""Vectors in a Qdrant server: one collection for all tenants, made by the first write.

The tenant's keyword index is marked as such, so the server keeps a tenant's points together.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar

from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from schemas.errors import EngineDown, TransientFailure
from schemas.index_records import DocumentPage, DocumentState, IndexedChunk, IndexedDocument, IndexFilter, ScoredChunk
from services.stores.index_conditions import KEYWORD_FIELDS, AnyOf, Condition, conditions, of_document, payload
from services.stores.vector_index import (
    EmbeddingDimensionChanged,
    StoredVector,
    as_floats,
    one_dimension,
    stored_vector,
)

BATCH_POINTS = 256
SCROLL_POINTS = 1_000
MAX_MODELS = 100

T = TypeVar("T")


def connect_qdrant(url: str, api_key: str | None, timeout_s: int = 10) -> AsyncQdrantClient:
    """A client that does not retry. Versions are not compared: that would call the server from a constructor."""
    return AsyncQdrantClient(url=url, api_key=api_key, timeout=timeout_s, check_compatibility=False)


class QdrantServerVectors:
    """VectorIndex on a Qdrant server, over a client that this object owns from `open` to `close`."""

    def __init__(self, client: AsyncQdrantClient, collection: str = "perdure_chunks") -> None:
        self._client = client
        self._collection = collection
        self._dimension: int | None = None

    async def open(self) -> None:
        """Nothing to do: the collection is looked at when first used, so a server that is away stops no start."""

    async def close(self) -> None:
        await self._client.close()

    async def ping(self) -> None:
        await _name_failure(self._client.get_collections())

    async def upsert(self, points: Sequence[IndexedChunk]) -> None:
        if not points:
            return
        known = await self._known_dimension()
        dimension = one_dimension(points, known)
        if known is None:
            await self._create(dimension)
        for start in range(0, len(points), BATCH_POINTS):
            batch = [_point(chunk) for chunk in points[start : start + BATCH_POINTS]]
            await self._call(self._client.upsert(self._collection, points=batch, wait=True))

    async def search(self, vector: Sequence[float], flt: IndexFilter, limit: int, model: str) -> list[ScoredChunk]:
        if flt.matches_nothing:
            return []
        dimension = await self._known_dimension()
        if dimension is None:
            return []
        if len(vector) != dimension:
            raise EmbeddingDimensionChanged(dimension, len(vector), model)
        found = await self._call(
            self._client.query_points(
                self._collection,
                query=as_floats(vector),
                query_filter=_filter([*conditions(flt), AnyOf("model", [model])]),
                limit=limit,
                with_payload=False,
            )
        )
        return [ScoredChunk(str(point.id), point.score) for point in found.points]

    async def vectors(self, ids: Sequence[str]) -> dict[str, StoredVector]:
        if not ids or await self._known_dimension() is None:
            return {}
        call = self._client.retrieve(self._collection, list(ids), with_payload=False, with_vectors=True)
        records = await self._call(call)
        return {str(record.id): stored_vector(record.vector) for record in records}

    async def delete_ids(self, tenant: str, ids: Sequence[str]) -> int:
        if not ids:
            return 0
        return await self._delete(_filter([AnyOf("tenant", [tenant])], models.HasIdCondition(has_id=list(ids))))

    async def delete_document(self, tenant: str, document: str) -> int:
        return await self._delete(_filter(of_document(tenant, document)))

    async def count_document(self, tenant: str, document: str) -> int:
        return await self._count(_filter(of_document(tenant, document)))

    async def document_ids(self, tenant: str, document: str) -> set[str]:
        return set((await self.document_state(tenant, document)).ids)

    async def document_state(self, tenant: str, document: str) -> DocumentState:
        records: list[models.Record] = []
        following: Any = None
        while await self._known_dimension() is not None:
            call = self._client.scroll(
                self._collection,
                scroll_filter=_filter(of_document(tenant, document)),
                limit=SCROLL_POINTS,
                offset=following,
                with_payload=["access_version", "model"],
            )
            page, following = await self._call(call)
            records.extend(page)
            if following is None:
                break
        payloads = [record.payload or {} for record in records]
        return DocumentState(
            ids=tuple(sorted(str(record.id) for record in records)),
            access_versions=tuple(sorted({int(fields["access_version"]) for fields in payloads})),
            models=tuple(sorted({str(fields["model"]) for fields in payloads})),
        )

    async def set_readers(self, tenant: str, document: str, readers: Sequence[str], access_version: int) -> None:
        not_later = models.FieldCondition(key="access_version", range=models.Range(lte=access_version))
        fields = {"readers": list(readers), "access_version": access_version}
        await self._set_payload(_filter(of_document(tenant, document), not_later), fields)

    async def set_version(self, tenant: str, document: str, media_type: str, updated_at: int) -> None:
        await self._set_payload(
            _filter(of_document(tenant, document)), {"media_type": media_type, "updated_at": updated_at}
        )

    async def _set_payload(self, points: models.Filter, fields: dict[str, Any]) -> None:
        if await self._known_dimension() is None:
            return
        await self._call(self._client.set_payload(self._collection, payload=fields, points=points, wait=True))

    async def list_documents(self, after: str | None = None, limit: int = SCROLL_POINTS) -> DocumentPage:
        if await self._known_dimension() is None:
            return DocumentPage((), None)
        call = self._client.scroll(self._collection, limit=limit, offset=after, with_payload=["tenant", "document"])
        records, following = await self._call(call)
        payloads = [record.payload or {} for record in records]
        documents = {IndexedDocument(str(fields["tenant"]), str(fields["document"])) for fields in payloads}
        return DocumentPage(tuple(sorted(documents)), None if following is None else str(following))

    async def model_counts(self) -> dict[str, int]:
        if await self._known_dimension() is None:
            return {}
        found = await self._call(self._client.facet(self._collection, key="model", limit=MAX_MODELS, exact=True))
        return {str(hit.value): hit.count for hit in found.hits}

    async def clear(self) -> None:
        self._dimension = None
        await _name_failure(self._client.delete_collection(self._collection))

    async def _known_dimension(self) -> int | None:
        """The collection's dimension, or null when there is no collection yet. Remembered once known."""
        if self._dimension is None and await _name_failure(self._client.collection_exists(self._collection)):
            about = await self._call(self._client.get_collection(self._collection))
            parameters = about.config.params.vectors
            self._dimension = parameters.size if isinstance(parameters, models.VectorParams) else None
        return self._dimension

    async def _create(self, dimension: int) -> None:
        """Two processes may come here together: the second finds the collection there, and the indexes are idempotent."""
        client, name = self._client, self._collection
        parameters = models.VectorParams(size=dimension, distance=models.Distance.COSINE)
        try:
            await _name_failure(client.create_collection(name, vectors_config=parameters))
        except UnexpectedResponse as error:
            if error.status_code != 409:
                raise
        for field in (*KEYWORD_FIELDS, "model"):
            schema = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=field == "tenant")
            await self._call(client.create_payload_index(name, field, schema, wait=True))
        integer = models.PayloadSchemaType.INTEGER
        await self._call(client.create_payload_index(name, "updated_at", integer, wait=True))
        self._dimension = dimension

    async def _count(self, matching: models.Filter) -> int:
        if await self._known_dimension() is None:
            return 0
        return (await self._call(self._client.count(self._collection, matching, exact=True))).count

    async def _delete(self, matching: models.Filter) -> int:
        count = await self._count(matching)
        if count:
            selector = models.FilterSelector(filter=matching)
            await self._call(self._client.delete(self._collection, points_selector=selector, wait=True))
        return count

    async def _call(self, call: Awaitable[T]) -> T:
        """A collection that has gone since we last looked is looked for again by the next call."""
        try:
            return await _name_failure(call)
        except UnexpectedResponse as error:
            self._dimension = None
            if error.status_code == 404:
                raise EngineDown("qdrant", f"The collection {self._collection} has gone") from error
            if error.status_code == 400:  # another process may have made the collection anew, with another dimension
                raise TransientFailure("engine_down", "Qdrant refused a request with status 400") from error
            raise


async def _name_failure(call: Awaitable[T]) -> T:
    try:
        return await call
    except ResourceExhaustedResponse as error:
        raise TransientFailure("engine_down", "Qdrant asks to slow down", float(error.retry_after_s)) from error
    except ResponseHandlingException as error:
        raise EngineDown("qdrant", f"Qdrant does not answer: {type(error.source).__name__}") from error
    except UnexpectedResponse as error:
        status = error.status_code or 500
        if status == 429:
            raise TransientFailure("engine_down", "Qdrant asks to slow down") from error
        if status >= 500 or status in {401, 403}:
            raise EngineDown("qdrant", f"Qdrant refused a request with status {status}") from error
        raise


def _point(chunk: IndexedChunk) -> models.PointStruct:
    return models.PointStruct(
        id=chunk.id, vector=as_floats(chunk.vector), payload={**payload(chunk), "model": chunk.model}
    )


def _filter(wanted: Sequence[Condition], *more: models.Condition) -> models.Filter:
    return models.Filter(must=[*(_condition(condition) for condition in wanted), *more])


def _condition(condition: Condition) -> models.FieldCondition:
    if isinstance(condition, AnyOf):
        return models.FieldCondition(key=condition.field, match=models.MatchAny(any=condition.values))
    return models.FieldCondition(key=condition.field, range=models.Range(gte=condition.start, lt=condition.before))
