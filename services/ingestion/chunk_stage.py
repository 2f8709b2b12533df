"""Stage chunk: canonical text becomes content-addressed chunks of this version."""

from __future__ import annotations

import tempfile
from pathlib import Path

from schemas.errors import PermanentFailure
from services.ingestion.text_pool import TextPool
from services.ingestion.version_work import VersionWork, enter_stage
from services.stores import chunks_store, documents_store
from services.stores.blob_store import BlobStore
from services.stores.database import Database


class ChunkStage:
    """Cuts in a child process: this one must stay free to answer."""

    def __init__(self, database: Database, blobs: BlobStore, texts: TextPool) -> None:
        self._database = database
        self._blobs = blobs
        self._texts = texts

    async def run(self, work: VersionWork) -> dict[str, int]:
        """Counts: chunks. A version without a chunk is PermanentFailure("no_text")."""
        async with documents_store.writing(self._database, work.tenant, work.document_id) as transaction:
            document = await documents_store.require_alive(transaction, work.document_id)
            await enter_stage(transaction, work, "chunking")
            children = await documents_store.children(transaction, work.document_id)
        parent = len(document["external_id"] or "") + 1
        members = [child["external_id"][parent:] for child in children]
        name = document["title"] or (document["external_id"] or "").rsplit("/", 1)[-1]
        with tempfile.TemporaryDirectory(prefix="perdure-chunk-") as folder:
            canonical = Path(folder) / "canonical.json"
            await self._blobs.get_to_file(f"{work.blob_prefix}/canonical.json", canonical)
            identified = await self._texts.cut(canonical, work.document_id, name, members)
        if not identified:
            raise PermanentFailure("no_text", "The file holds no text that can be searched")
        async with documents_store.writing(self._database, work.tenant, work.document_id) as transaction:
            await chunks_store.store_version(transaction, work.document_id, work.version, identified)
        return {"chunks": len(identified)}
