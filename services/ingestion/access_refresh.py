"""Rewrites a document's readers in both indexes. Correctness never waits for it (invariant 1)."""

from __future__ import annotations

from schemas.access import index_readers
from services.stores import documents_store
from services.stores.database import Database
from services.stores.keyword_index import KeywordIndex
from services.stores.vector_index import VectorIndex


class AccessRefresh:
    def __init__(self, database: Database, vectors: VectorIndex, keywords: KeywordIndex) -> None:
        self._database = database
        self._vectors = vectors
        self._keywords = keywords

    async def rewrite(self, tenant: str, document_id: str) -> None:
        """Writes the readers of this moment; an index point that already carries a later access version keeps its own."""
        async with documents_store.writing(self._database, tenant, document_id) as transaction:
            row = await documents_store.require_alive(transaction, document_id)
            readers = index_readers(row["space_id"], row["owner"], row["readers"] or [])
            for index in (self._vectors, self._keywords):
                await index.set_readers(tenant, document_id, readers, row["access_version"])
