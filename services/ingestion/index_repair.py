"""Compares both indexes with Postgres after a start and repairs what differs; also refills them from nothing (invariant 1)."""

from __future__ import annotations

import structlog

from schemas.errors import Failure
from services.gateways.embedding_model import EmbeddingModel
from services.ingestion.index_stage import IndexStage
from services.stores import chunks_store, documents_store, embeddings_store
from services.stores.database import Database, Row, Transaction
from services.stores.documents_store import DocumentGone
from services.stores.keyword_index import KeywordIndex
from services.stores.vector_index import VectorIndex

PAGE = 200
_log = structlog.get_logger(__name__)


class IndexRepair:
    """Postgres is the truth: whatever differs in an index is made to follow it."""

    def __init__(
        self,
        database: Database,
        index_stage: IndexStage,
        vectors: VectorIndex,
        keywords: KeywordIndex,
        model: EmbeddingModel,
    ) -> None:
        self._database = database
        self._index_stage = index_stage
        self._indexes: tuple[VectorIndex | KeywordIndex, ...] = (vectors, keywords)
        self._model = model

    async def run(self) -> None:
        """Every living document is compared, then every document an index knows is looked up in Postgres."""
        repaired = await self._living_documents() + await self._unknown_documents()
        if repaired:
            _log.info("indexes_repaired", documents=repaired)

    async def rebuild(self) -> int:
        """Empties both indexes and writes every live version again; gives the number of documents."""
        for index in self._indexes:
            await index.clear()
        return await self._living_documents()

    async def _living_documents(self) -> int:
        after, repaired = "", 0
        while True:
            async with self._database.every_tenant("index repair walks the documents of all tenants") as transaction:
                rows = await documents_store.living_page(transaction, after, PAGE)
            for row in rows:
                repaired += await self._repaired(row)
            if len(rows) < PAGE:
                return repaired
            after = rows[-1]["id"]

    async def _repaired(self, row: Row) -> bool:
        """A document that cannot be repaired now is left to the next start, and told."""
        try:
            return await self._compare(row["tenant"], row["id"])
        except DocumentGone:
            return False
        except Failure as failure:
            _log.warning("index_repair_failed", document=row["id"], reason=failure.detail)
            return False

    async def _compare(self, tenant: str, document_id: str) -> bool:
        """Holds the document's lock alone, as a sweep does: points that an ingest writes meanwhile would seem stale."""
        async with self._database.begin(tenant) as transaction:
            await transaction.lock(documents_store.lock_name(document_id))
            document = await documents_store.require_alive(transaction, document_id)
            live = [document["live_version"]] if document["live_version"] is not None else []
            wanted = await chunks_store.ids_of_versions(transaction, document_id, live)
            to_come = await documents_store.versions_to_come(transaction, document_id)
            allowed = wanted | await chunks_store.ids_of_versions(transaction, document_id, to_come)
            changed = [await self._clean(index, tenant, document, allowed) for index in self._indexes]
            if "outdated" in changed:
                await self._index_stage.rewrite(transaction, tenant, document)
            lacking = [wanted - await index.document_ids(tenant, document_id) for index in self._indexes]
            if any(lacking):
                await self._fill(transaction, tenant, document_id, document["live_version"])
        return any(changed) or any(lacking)

    async def _clean(self, index: VectorIndex | KeywordIndex, tenant: str, document: Row, allowed: set[str]) -> str:
        """Takes out what no version has. What is left may be `outdated`; else the index was `stale` in places, or not."""
        state = await index.document_state(tenant, document["id"])
        stale = set(state.ids) - allowed
        current = document["access_version"]
        if any(version > current for version in state.access_versions):
            stale = set(state.ids)  # from a time that Postgres does not know, and no rewrite would win against it
        await index.delete_ids(tenant, sorted(stale))
        if len(stale) < len(state.ids) and state.access_versions != (current,):
            return "outdated"
        return "stale" if stale else ""

    async def _fill(self, transaction: Transaction, tenant: str, document_id: str, version: int) -> None:
        """Vectors that the cache lacks (another model, a lost row) are made again."""
        missing = await chunks_store.missing_inputs(transaction, document_id, version, self._model.name)
        if missing:
            made = await self._model.embed_passages([row["embedding_input"] for row in missing])
            vectors = {row["input_hash"]: vector for row, vector in zip(missing, made, strict=True)}
            await embeddings_store.store(transaction, self._model.name, vectors)
        await self._index_stage.fill(transaction, tenant, document_id, version)

    async def _unknown_documents(self) -> int:
        """Points of documents that are removed or never were."""
        removed = 0
        for index in self._indexes:
            after: str | None = None
            while True:
                page = await index.list_documents(after)
                for known in page.documents:
                    async with self._database.begin(known.tenant) as transaction:
                        row = await documents_store.get(transaction, known.document)
                    if row is None or row["removed_at"] is not None:
                        removed += int(await index.delete_document(known.tenant, known.document) > 0)
                after = page.after
                if after is None:
                    break
        return removed
