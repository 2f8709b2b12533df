"""Empties every store of a tombstoned document and proves it empty (spec: Removal)."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.domain_events import SCRUBBED_FIELDS
from schemas.errors import TransientFailure
from schemas.identifiers import document_stream
from services.gateways.embedding_model import EmbeddingModel
from services.stores import (
    artifacts_store,
    chunks_store,
    documents_store,
    embeddings_store,
    event_log,
    runs_store,
    scrub_store,
)
from services.stores.blob_store import BlobStore
from services.stores.database import Database, Row, Transaction
from services.stores.keyword_index import KeywordIndex
from services.stores.vector_index import VectorIndex


class Removal:
    """Each method is one step, safe to run again. Nothing is written for the document any more: it has a tombstone."""

    def __init__(
        self,
        database: Database,
        blobs: BlobStore,
        model: EmbeddingModel,
        vectors: VectorIndex,
        keywords: KeywordIndex,
    ) -> None:
        self._database = database
        self._blobs = blobs
        self._model = model
        self._vectors = vectors
        self._keywords = keywords

    async def open_ingests(self, tenant: str, document_id: str) -> Sequence[str]:
        """Ingest runs that have not closed yet; removal goes on when there are none."""
        async with self._database.begin(tenant) as transaction:
            return await runs_store.open_runs_of(transaction, document_id, "ingest")

    async def empty_indexes(self, tenant: str, document_id: str) -> dict[str, int]:
        """Deletes the document's points under its exclusive lock and counts what is left. Counts: removed."""
        async with self._database.begin(tenant) as transaction:
            await transaction.lock(documents_store.lock_name(document_id))
            removed = 0
            for index in (self._vectors, self._keywords):
                removed += await index.delete_document(tenant, document_id)
                left = await index.count_document(tenant, document_id)
                if left:
                    raise TransientFailure("not_empty", f"{left} points of the document are still in an index")
        return {"removed": removed}

    async def empty_blobs(self, tenant: str, document_id: str) -> dict[str, int]:
        prefix = f"{tenant}/documents/{document_id}/"
        keys = {key async for key in self._blobs.list(prefix)}
        async with self._database.begin(tenant) as transaction:
            keys |= await documents_store.blob_keys(transaction, document_id)
            keys |= await artifacts_store.blob_keys_from(transaction, document_id)
        for key in sorted(keys):
            await self._blobs.delete(key)
        if [key async for key in self._blobs.list(prefix)]:
            raise TransientFailure("not_empty", "Blobs of the document are still in the store")
        return {"removed": len(keys)}

    async def empty_rows(self, tenant: str, run_id: str, document_id: str) -> dict[str, int]:
        """Chunks, cached vectors, statistics, names in events; and `document.removed`, which leaves the skeleton row."""
        async with self._database.begin(tenant) as transaction:
            await transaction.lock(documents_store.lock_name(document_id))
            document = await documents_store.get(transaction, document_id, for_update=True)
            if document is None or document["removed_at"] is not None:
                return {"removed": 0}
            removed = await chunks_store.count_document(transaction, document_id)
            await self._take_from_statistics(transaction, document)
            await chunks_store.drop_document(transaction, document_id)
            stream = document_stream(document_id)
            await event_log.scrub(transaction, [stream], SCRUBBED_FIELDS)
            await scrub_store.scrub_audit(transaction, [stream], SCRUBBED_FIELDS)
            await scrub_store.scrub_run_errors(transaction, document_id)
            await scrub_store.scrub_receipts(transaction, document_id)
            await scrub_store.withhold_answers(transaction, document_id)
            await documents_store.append(transaction, document_id, "document.removed", {}, run_id=run_id)
            left = await chunks_store.count_document(transaction, document_id)
            if left:
                raise TransientFailure("not_empty", f"{left} rows of the document are still in Postgres")
        return {"removed": removed}

    async def _take_from_statistics(self, transaction: Transaction, document: Row) -> None:
        if document["live_version"] is None:
            return
        name, dimensions = self._model.name, self._model.dimensions
        count, total = await embeddings_store.sum_of_version(
            transaction, name, document["id"], document["live_version"], dimensions
        )
        await embeddings_store.shift_space(transaction, document["space_id"], name, -count, -total)
