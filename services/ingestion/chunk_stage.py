"""Stage chunk: canonical text becomes content-addressed chunks of this version."""

from __future__ import annotations

import asyncio

from schemas.errors import PermanentFailure
from schemas.parsed_documents import CanonicalDocument, ChunkDraft
from schemas.settings import ChunkingSettings
from services.documents.chunk_identity import identify
from services.documents.chunking import chunk_document
from services.documents.token_counter import TokenCounter
from services.ingestion.version_work import VersionWork, enter_stage
from services.stores import chunks_store, documents_store
from services.stores.blob_store import BlobStore
from services.stores.database import Database


class ChunkStage:
    """Cuts in a thread: the event loop must stay free to answer."""

    def __init__(self, database: Database, blobs: BlobStore, tokens: TokenCounter, limits: ChunkingSettings) -> None:
        self._database = database
        self._blobs = blobs
        self._tokens = tokens
        self._limits = limits

    async def run(self, work: VersionWork) -> dict[str, int]:
        """Counts: chunks. A version without a chunk is PermanentFailure("no_text")."""
        async with documents_store.writing(self._database, work.tenant, work.document_id) as transaction:
            document = await documents_store.require_alive(transaction, work.document_id)
            await enter_stage(transaction, work, "chunking")
            children = await documents_store.children(transaction, work.document_id)
        parent = len(document["external_id"] or "") + 1
        members = [child["external_id"][parent:] for child in children]
        stored = await self._blobs.get(f"{work.blob_prefix}/canonical.json")
        name = document["title"] or (document["external_id"] or "").rsplit("/", 1)[-1]
        identified = await asyncio.to_thread(self._cut, work.document_id, stored, name, members)
        if not identified:
            raise PermanentFailure("no_text", "The file holds no text that can be searched")
        async with documents_store.writing(self._database, work.tenant, work.document_id) as transaction:
            await chunks_store.store_version(transaction, work.document_id, work.version, identified)
        return {"chunks": len(identified)}

    def _cut(self, document_id: str, stored: bytes, name: str, members: list[str]) -> list[tuple[str, ChunkDraft]]:
        canonical = CanonicalDocument.model_validate_json(stored)
        drafts = chunk_document(canonical, name, self._tokens, self._limits, members=members)
        return identify(document_id, drafts)
