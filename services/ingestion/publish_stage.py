"""Stages publish and sweep: one transaction makes the version live, then what only older versions held goes away."""

from __future__ import annotations

from schemas.errors import PerdureError
from services.gateways.embedding_model import EmbeddingModel
from services.ingestion.embed_stage import STEP as EMBED_STEP
from services.ingestion.index_stage import told_of_version
from services.ingestion.version_work import VersionWork
from services.stores import chunks_store, documents_store, embeddings_store, runs_store
from services.stores.database import Database, Transaction
from services.stores.keyword_index import KeywordIndex
from services.stores.vector_index import VectorIndex


class NewerVersionLive(PerdureError):
    """A newer version was published first; this one ends superseded."""


class PublishStage:
    """Makes a version live and takes away what it replaced."""

    def __init__(self, database: Database, model: EmbeddingModel, vectors: VectorIndex, keywords: KeywordIndex) -> None:
        self._database = database
        self._model = model
        self._vectors = vectors
        self._keywords = keywords

    async def publish(self, work: VersionWork) -> dict[str, int]:
        """Flips `live_version` when this one is newer and there is no tombstone. Counts: chunks."""
        async with documents_store.writing(self._database, work.tenant, work.document_id) as transaction:
            document = await documents_store.get(transaction, work.document_id, for_update=True)
            if document is None or document["tombstoned_at"] is not None:
                raise documents_store.DocumentGone(work.document_id)
            live = document["live_version"]
            if live == work.version:
                return {"chunks": 0}
            if live is not None and live > work.version:
                raise NewerVersionLive(work.document_id)
            chunks = await self._shift_statistics(transaction, document["space_id"], work, live)
            made = await runs_store.step_result(transaction, work.run_id, EMBED_STEP)
            data = {
                "version": work.version,
                "live_version": work.version,
                "chunks": chunks,
                "embeddings_made": int((made or {}).get("made", 0)),
                "published_at": transaction.now.isoformat(),
            }
            await documents_store.append(transaction, work.document_id, "document.published", data, run_id=work.run_id)
        return {"chunks": chunks}

    async def _shift_statistics(
        self, transaction: Transaction, space_id: str, work: VersionWork, replaced: int | None
    ) -> int:
        model, dimensions = self._model.name, self._model.dimensions
        chunks, added = await embeddings_store.sum_of_version(
            transaction, model, work.document_id, work.version, dimensions
        )
        taken, removed = 0, added * 0
        if replaced is not None:
            taken, removed = await embeddings_store.sum_of_version(
                transaction, model, work.document_id, replaced, dimensions
            )
        await embeddings_store.shift_space(transaction, space_id, model, chunks - taken, added - removed)
        return chunks

    async def sweep(self, work: VersionWork) -> dict[str, int]:
        """Takes from both indexes what neither the live version nor one to come has. Counts: swept."""
        return await self._sweep(work, keep_own=True)

    async def discard(self, work: VersionWork, *, drop_chunks: bool) -> dict[str, int]:
        """Leaves no point of a version that will not be published in an index. Counts: swept.

        A failed version keeps its chunk list, from which a retry goes on; a cancelled one leaves nothing.
        """
        if drop_chunks:
            async with self._database.begin(work.tenant) as transaction:
                await transaction.lock(documents_store.lock_name(work.document_id))
                document = await documents_store.require_alive(transaction, work.document_id)
                if document["live_version"] != work.version:
                    await chunks_store.drop_version(transaction, work.document_id, work.version)
        return await self._sweep(work, keep_own=False)

    async def _sweep(self, work: VersionWork, *, keep_own: bool) -> dict[str, int]:
        """Holds the document's lock alone: an ingest that is writing finishes first, a later one fills what it lacks."""
        async with self._database.begin(work.tenant) as transaction:
            await transaction.lock(documents_store.lock_name(work.document_id))
            document = await documents_store.require_alive(transaction, work.document_id)
            to_come = await documents_store.versions_to_come(transaction, work.document_id)
            kept_versions = {number for number in to_come if keep_own or number != work.version}
            if document["live_version"] is not None:
                kept_versions.add(document["live_version"])
            kept = await chunks_store.ids_of_versions(transaction, work.document_id, sorted(kept_versions))
            swept = 0
            for index in (self._vectors, self._keywords):
                stale = await index.document_ids(work.tenant, work.document_id) - kept
                if stale:
                    swept += await index.delete_ids(work.tenant, sorted(stale))
            if document["live_version"] == work.version > 1:
                await self._tell_version(transaction, work)
        return {"swept": swept}

    async def _tell_version(self, transaction: Transaction, work: VersionWork) -> None:
        """Chunks that were kept from an older version get the type and time of this one, which filters ask for."""
        version = await documents_store.version(transaction, work.document_id, work.version)
        for index in (self._vectors, self._keywords):
            await index.set_version(work.tenant, work.document_id, *told_of_version(version))
