"""Rewrites a document's readers and tags in both indexes. Correctness never waits for it (invariant 1)."""

from __future__ import annotations

from services.ingestion.index_stage import IndexStage
from services.stores import documents_store
from services.stores.database import Database


class AccessRefresh:
    """Brings the payloads of both indexes up to a document's readers."""

    def __init__(self, database: Database, index_stage: IndexStage) -> None:
        self._database = database
        self._index_stage = index_stage

    async def rewrite(self, tenant: str, document_id: str) -> None:
        """Writes what holds at this moment: under the document's lock alone, so the last of two rewrites is the later one."""
        async with self._database.begin(tenant) as transaction:
            await transaction.lock(documents_store.lock_name(document_id))
            document = await documents_store.require_alive(transaction, document_id)
            await self._index_stage.rewrite(transaction, tenant, document)
