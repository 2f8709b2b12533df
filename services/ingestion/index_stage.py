"""Stage index: every chunk of this version stands in both indexes, visible to the next search."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from schemas.access import index_readers
from schemas.index_records import IndexedChunk
from services.gateways.embedding_model import EmbeddingModel
from services.ingestion.text_pool import ChunkWords, TextPool
from services.ingestion.version_work import VersionWork, enter_stage
from services.retrieval.index_tokens import ChunkTokens
from services.stores import chunks_store, documents_store, embeddings_store
from services.stores.database import Database, Row, Transaction
from services.stores.keyword_index import KeywordIndex
from services.stores.vector_index import VectorIndex

POINTS_PER_WRITE = 256


class IndexStage:
    """Writes only what an index lacks, so running again after a kill writes the rest."""

    def __init__(
        self,
        database: Database,
        model: EmbeddingModel,
        vectors: VectorIndex,
        keywords: KeywordIndex,
        texts: TextPool,
    ) -> None:
        self._database = database
        self._texts = texts
        self._model = model
        self._vectors = vectors
        self._keywords = keywords

    async def run(self, work: VersionWork) -> dict[str, int]:
        """Counts: chunks (of the version), added (to either index)."""
        async with documents_store.writing(self._database, work.tenant, work.document_id) as transaction:
            await enter_stage(transaction, work, "indexing")
        async with documents_store.writing(self._database, work.tenant, work.document_id) as transaction:
            # the shared lock is held over the writes: a sweep or a removal waits, then sees what was written
            chunks, added = await self.fill(transaction, work.tenant, work.document_id, work.version)
        return {"chunks": chunks, "added": added}

    async def fill(self, transaction: Transaction, tenant: str, document_id: str, version: int) -> tuple[int, int]:
        """Makes both indexes hold the version's chunks; the caller holds the document's lock. Gives (chunks, added)."""
        document = await documents_store.require_alive(transaction, document_id)
        version_row = await documents_store.version(transaction, document_id, version)
        rows = await chunks_store.of_version(transaction, document_id, version)
        in_vectors = await self._vectors.document_ids(tenant, document_id)
        in_keywords = await self._keywords.document_ids(tenant, document_id)
        added = 0
        for start in range(0, len(rows), POINTS_PER_WRITE):
            part = [
                row
                for row in rows[start : start + POINTS_PER_WRITE]
                if row["chunk_id"] not in in_vectors or row["chunk_id"] not in in_keywords
            ]
            if part:
                await self._write(transaction, tenant, document, version_row, part)
                added += len(part)
        return len(rows), added

    async def rewrite(self, transaction: Transaction, tenant: str, document: Row) -> None:
        """Gives every point of the document the readers and tags of now; the caller holds the document's lock alone.

        All points get the readers first, by one filter; those of versions that are live or to come are then written whole,
        each once: what the live version has tells of that one, whatever comes.
        """
        document_id = document["id"]
        readers = index_readers(document["space_id"], document["owner"], document["readers"] or [])
        for index in (self._vectors, self._keywords):
            await index.set_readers(tenant, document_id, readers, document["access_version"])
        held = await self._vectors.document_ids(tenant, document_id) | await self._keywords.document_ids(
            tenant, document_id
        )
        live = [document["live_version"]] if document["live_version"] is not None else []
        for number in [*live, *await documents_store.versions_to_come(transaction, document_id)]:
            version = await documents_store.version(transaction, document_id, number)
            rows = [
                row
                for row in await chunks_store.of_version(transaction, document_id, number)
                if row["chunk_id"] in held
            ]
            held -= {row["chunk_id"] for row in rows}
            for start in range(0, len(rows), POINTS_PER_WRITE):
                part = rows[start : start + POINTS_PER_WRITE]
                await self._write(transaction, tenant, document, version, part)

    async def _write(
        self,
        transaction: Transaction,
        tenant: str,
        document: Row,
        version: Row | None,
        rows: Sequence[Row],
    ) -> None:
        vectors = await embeddings_store.of_chunks(transaction, self._model.name, [row["chunk_id"] for row in rows])
        lost = [row for row in rows if row["chunk_id"] not in vectors]
        if lost:
            vectors |= await self._embed_again(transaction, lost)
        title = document["title"] or ""
        chunks = [ChunkWords(title, row["heading_path"], row["context"] or "", row["text"]) for row in rows]
        words = await self._texts.words(title or document["external_id"] or document["id"], chunks)
        points = self._points(tenant, document, version, rows, vectors, words)
        await asyncio.gather(
            self._vectors.upsert([point for point in points if point.vector]), self._keywords.upsert(points)
        )

    async def _embed_again(self, transaction: Transaction, rows: Sequence[Row]) -> dict[str, bytes]:
        """A removal of another document with the same text may have emptied the cache after the embed stage looked."""
        inputs = {row["input_hash"]: row["embedding_input"] for row in rows}
        made = await self._model.embed_passages(list(inputs.values()))
        vectors = dict(zip(inputs, made, strict=True))
        await embeddings_store.store(transaction, self._model.name, vectors)
        return {row["chunk_id"]: vectors[row["input_hash"]].astype("<f4").tobytes() for row in rows}

    def _points(
        self,
        tenant: str,
        document: Row,
        version: Row | None,
        rows: Sequence[Row],
        vectors: dict[str, bytes],
        words: Sequence[ChunkTokens],
    ) -> list[IndexedChunk]:
        readers = index_readers(document["space_id"], document["owner"], document["readers"] or [])
        media_type, updated_at = told_of_version(version)
        points = []
        for row, tokens in zip(rows, words, strict=True):
            points.append(
                IndexedChunk(
                    id=row["chunk_id"],
                    tenant=tenant,
                    space=document["space_id"],
                    document=document["id"],
                    access_version=document["access_version"],
                    readers=readers,
                    media_type=media_type,
                    source=document["source"] or "",
                    tags=document["tags"] or [],
                    updated_at=updated_at,
                    model=self._model.name,
                    vector=vectors.get(row["chunk_id"], b""),
                    title_tokens=tokens.title,
                    body_tokens=tokens.body,
                    exact_tokens=tokens.exact,
                )
            )
        return points


def told_of_version(version: Row | None) -> tuple[str, int]:
    """What an index's points tell of their version: its media type, and when it was received, in Unix seconds."""
    return ("", 0) if version is None else (version["media_type"] or "", int(version["created_at"].timestamp()))
