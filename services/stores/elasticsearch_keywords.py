"""Keywords in Elasticsearch: one index for all tenants behind an alias, made when first used.

Writes go through the alias and require it: without that a missing index would be made with guessed mappings.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar

from elastic_transport import TransportError
from elasticsearch import ApiError, AsyncElasticsearch

from schemas.errors import EngineDown, PermanentFailure, TransientFailure
from schemas.index_records import (
    DocumentPage,
    DocumentState,
    IndexedChunk,
    IndexedDocument,
    IndexFilter,
    KeywordQuery,
    ScoredChunk,
)
from services.stores import elasticsearch_mapping as mapping
from services.stores.index_conditions import AnyOf, Condition, conditions, of_document
from services.stores.keyword_index import counted_terms, lift_exact

BATCH_CHUNKS = 500
PAGE_CHUNKS = 1_000

T = TypeVar("T")


def connect_elasticsearch(url: str, api_key: str | None, timeout_s: float = 10) -> AsyncElasticsearch:
    """A client that does not retry."""
    return AsyncElasticsearch(
        url, api_key=api_key, request_timeout=timeout_s, max_retries=0, retry_on_timeout=False, retry_on_status=()
    )


class ElasticsearchKeywords:
    """KeywordIndex on Elasticsearch 7.10 or later, over a client that this object owns from `open` to `close`."""

    def __init__(
        self, client: AsyncElasticsearch, name: str = "perdure-chunks", *, shards: int = 1, replicas: int = 1
    ) -> None:
        self._client = client
        self._alias = name
        self._index = f"{name}-{mapping.VERSION}"
        self._settings = {**mapping.SETTINGS, "number_of_shards": shards, "number_of_replicas": replicas}
        self._ready = False

    async def open(self) -> None:
        """Nothing to do: the index is looked at when first used, so a server that is away stops no start."""

    async def close(self) -> None:
        await self._client.close()

    async def ping(self) -> None:
        await _name_failure(self._client.info())

    async def upsert(self, chunks: Sequence[IndexedChunk]) -> None:
        """A write waits for the next refresh; several end with a refresh of their own, for they may lie on all shards."""
        several = len(chunks) > BATCH_CHUNKS
        for start in range(0, len(chunks), BATCH_CHUNKS):
            await self._ensure()
            operations: list[dict[str, Any]] = []
            for chunk in chunks[start : start + BATCH_CHUNKS]:
                operations += [{"index": {"_id": chunk.id}}, mapping.source(chunk)]
            writing = self._client.bulk(
                index=self._alias,
                operations=operations,
                require_alias=True,
                refresh=False if several else "wait_for",
            )
            self._check(await self._call(writing))
        if several:
            await self._call(self._client.indices.refresh(index=self._alias))

    async def search(self, query: KeywordQuery, flt: IndexFilter, limit: int) -> list[ScoredChunk]:
        asked = None if flt.matches_nothing else mapping.words_query(query, conditions(flt))
        if asked is None:
            return []
        found = await self._search(query=asked, size=limit, source=False, track_total_hits=False)
        return lift_exact([ScoredChunk(hit["_id"], hit["_score"]) for hit in found["hits"]["hits"]])

    async def term_counts(self, tenant: str, spaces: Sequence[str], terms: Sequence[str]) -> dict[str, int]:
        tokens = counted_terms(terms)
        if not spaces or not tokens:
            return {}
        within = mapping.matching([AnyOf("tenant", [tenant]), AnyOf("space", list(spaces))])
        holding = [{"term": {"body": token}} for token in tokens.values()]
        found = await self._search(size=0, query=within, aggregations={"terms": {"filters": {"filters": holding}}})
        buckets = found["aggregations"]["terms"]["buckets"]
        return {term: int(bucket["doc_count"]) for term, bucket in zip(tokens, buckets, strict=True)}

    async def delete_ids(self, tenant: str, ids: Sequence[str]) -> int:
        return await self._delete([AnyOf("tenant", [tenant]), AnyOf("id", list(ids))]) if ids else 0

    async def delete_document(self, tenant: str, document: str) -> int:
        return await self._delete(of_document(tenant, document))

    async def count_document(self, tenant: str, document: str) -> int:
        await self._ensure()
        query = mapping.matching(of_document(tenant, document))
        return int((await self._call(self._client.count(index=self._alias, query=query)))["count"])

    async def document_ids(self, tenant: str, document: str) -> set[str]:
        return set((await self.document_state(tenant, document)).ids)

    async def document_state(self, tenant: str, document: str) -> DocumentState:
        ids: list[str] = []
        versions: set[int] = set()
        after: list[str] | None = None
        while True:
            found = await self._search(
                query=mapping.matching(of_document(tenant, document)),
                size=PAGE_CHUNKS,
                source=False,
                docvalue_fields=["access_version"],
                sort=[{"id": "asc"}],
                search_after=after,
            )
            hits = found["hits"]["hits"]
            ids.extend(hit["_id"] for hit in hits)
            versions.update(int(hit["fields"]["access_version"][0]) for hit in hits)
            if len(hits) < PAGE_CHUNKS:
                return DocumentState(tuple(sorted(ids)), tuple(sorted(versions)))
            after = hits[-1]["sort"]

    async def set_readers(self, tenant: str, document: str, readers: Sequence[str], access_version: int) -> None:
        not_later = {"range": {"access_version": {"lte": access_version}}}
        fields = {"readers": list(readers), "access_version": access_version}
        await self._update(mapping.matching(of_document(tenant, document), not_later), fields)

    async def set_version(self, tenant: str, document: str, media_type: str, updated_at: int) -> None:
        fields = {"media_type": media_type, "updated_at": updated_at}
        await self._update(mapping.matching(of_document(tenant, document)), fields)

    async def _update(self, query: dict[str, Any], fields: dict[str, Any]) -> None:
        await self._ensure()
        await self._call(self._client.indices.refresh(index=self._alias))
        done = await self._call(
            self._client.update_by_query(
                index=self._alias,
                query=query,
                script={"source": mapping.SET_FIELDS, "params": {"fields": fields}},
                conflicts="proceed",
                refresh=True,
            )
        )
        _check_by_query(done)

    async def list_documents(self, after: str | None = None, limit: int = 1_000) -> DocumentPage:
        """In order of tenant and document; `after` is the last pair of the page before, as JSON."""
        fields = [{field: {"terms": {"field": field}}} for field in ("tenant", "document")]
        composite: dict[str, Any] = {"size": limit, "sources": fields}
        if after is not None:
            composite["after"] = json.loads(after)
        found = await self._search(size=0, aggregations={"documents": {"composite": composite}})
        pairs = found["aggregations"]["documents"]
        documents = tuple(IndexedDocument(**bucket["key"]) for bucket in pairs["buckets"])
        following = json.dumps(pairs["after_key"]) if len(documents) == limit else None
        return DocumentPage(documents, following)

    async def clear(self) -> None:
        self._ready = False
        await _name_failure(self._client.indices.delete(index=self._index, ignore_unavailable=True))

    async def _ensure(self) -> None:
        """Makes the index with its alias, once. Two processes may come here together: one of them is told it is there."""
        if self._ready:
            return
        try:
            await _name_failure(
                self._client.indices.create(
                    index=self._index, aliases={self._alias: {}}, mappings=mapping.MAPPINGS, settings=self._settings
                )
            )
        except ApiError as error:
            if error.error != "resource_already_exists_exception":
                raise
        self._ready = True

    async def _search(self, **asked: Any) -> Any:
        await self._ensure()
        return await self._call(self._client.search(index=self._alias, **asked))

    async def _delete(self, chosen: Sequence[Condition]) -> int:
        """A delete by query sees what was refreshed, so a refresh comes first and one makes the end visible."""
        await self._ensure()
        await self._call(self._client.indices.refresh(index=self._alias))
        query = mapping.matching(chosen)
        done = await self._call(
            self._client.delete_by_query(index=self._alias, query=query, conflicts="proceed", refresh=True)
        )
        _check_by_query(done)
        return int(done["deleted"])

    async def _call(self, call: Awaitable[T]) -> T:
        """An index that has gone since we last looked is made again by the next call."""
        try:
            return await _name_failure(call)
        except ApiError as error:
            if error.status_code == 404:
                self._ready = False
                raise EngineDown("elasticsearch", f"The index {self._index} has gone") from error
            raise

    def _check(self, done: Any) -> None:
        """A bulk request answers 200 when some of its items failed."""
        failed = [item["index"] for item in done["items"] if item["index"]["status"] >= 300] if done["errors"] else []
        for item in failed:
            kind = item["error"]["type"]
            if item["status"] == 404:
                self._ready = False
                raise EngineDown("elasticsearch", f"The index {self._index} has gone")
            if item["status"] == 429:
                raise TransientFailure("engine_down", "Elasticsearch asks to slow down")
            if item["status"] >= 500:
                raise EngineDown("elasticsearch", f"Elasticsearch did not write a chunk: {kind}")
            raise PermanentFailure("corrupt", f"Elasticsearch refused chunk {item['_id']}: {kind}")


def _check_by_query(done: Any) -> None:
    """Chunks that changed meanwhile were left out: the whole call is safe to make again."""
    if done["failures"] or done["version_conflicts"] or done["timed_out"]:
        raise TransientFailure("engine_down", "Elasticsearch left out chunks that were being written")


async def _name_failure(call: Awaitable[T]) -> T:
    try:
        return await call
    except TransportError as error:
        raise EngineDown("elasticsearch", f"Elasticsearch does not answer: {type(error).__name__}") from error
    except ApiError as error:
        if error.status_code == 429:
            raise TransientFailure("engine_down", "Elasticsearch asks to slow down") from error
        if error.status_code >= 500 or error.status_code in {401, 403}:
            detail = f"Elasticsearch refused a request with status {error.status_code}"
            raise EngineDown("elasticsearch", detail) from error
        raise
