"""Chunks by content, and which version has which of them where."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from sqlalchemy import and_, delete, exists, func, select
from sqlalchemy.dialects.postgresql import insert

from schemas.parsed_documents import ChunkDraft
from services.stores.database import Row, Transaction
from services.stores.tables.documents import chunks, embeddings_cache, version_chunks

_ROWS_PER_STATEMENT = 1_000


def input_hash(embedding_input: str) -> str:
    return hashlib.sha256(embedding_input.encode()).hexdigest()


async def store_version(
    transaction: Transaction, document_id: str, version: int, identified: Sequence[tuple[str, ChunkDraft]]
) -> None:
    """Replaces the version's chunk list; chunks that other versions hold already are left as they are."""
    of_version = and_(version_chunks.c.document_id == document_id, version_chunks.c.version == version)
    await transaction.execute(delete(version_chunks).where(of_version))
    for start in range(0, len(identified), _ROWS_PER_STATEMENT):
        part = identified[start : start + _ROWS_PER_STATEMENT]
        content = [_content_row(document_id, chunk_id, draft) for chunk_id, draft in part]
        await transaction.execute(insert(chunks).on_conflict_do_nothing(), content)
        places = [_place_row(document_id, version, chunk_id, draft) for chunk_id, draft in part]
        await transaction.execute(insert(version_chunks), places)


def _content_row(document_id: str, chunk_id: str, draft: ChunkDraft) -> dict[str, object]:
    return {
        "id": chunk_id,
        "document_id": document_id,
        "text_hash": hashlib.sha256(draft.text.encode()).hexdigest(),
        "input_hash": input_hash(draft.embedding_input),
        "text": draft.text,
        "embedding_input": draft.embedding_input,
        "tokens": draft.tokens,
    }


def _place_row(document_id: str, version: int, chunk_id: str, draft: ChunkDraft) -> dict[str, object]:
    place = draft.model_dump(exclude={"text", "embedding_input", "tokens"})
    return {"document_id": document_id, "version": version, "chunk_id": chunk_id, **place}


async def of_version(transaction: Transaction, document_id: str, version: int) -> Sequence[Row]:
    """The version's chunks in order, with their texts and hashes."""
    statement = (
        select(version_chunks, chunks.c.text, chunks.c.embedding_input, chunks.c.input_hash, chunks.c.tokens)
        .join(chunks, chunks.c.id == version_chunks.c.chunk_id)
        .where(version_chunks.c.document_id == document_id, version_chunks.c.version == version)
        .order_by(version_chunks.c.ordinal)
    )
    return await transaction.all(statement)


async def ids_of_versions(transaction: Transaction, document_id: str, versions: Sequence[int]) -> set[str]:
    held = and_(version_chunks.c.document_id == document_id, version_chunks.c.version.in_(list(versions)))
    return {row["chunk_id"] for row in await transaction.all(select(version_chunks.c.chunk_id).where(held))}


async def missing_inputs(transaction: Transaction, document_id: str, version: int, model: str) -> Sequence[Row]:
    """(input_hash, embedding_input) of the version's chunks that have no vector of this model yet, each input once."""
    cached = exists().where(embeddings_cache.c.model == model, embeddings_cache.c.input_hash == chunks.c.input_hash)
    statement = (
        select(chunks.c.input_hash, func.min(chunks.c.embedding_input).label("embedding_input"))
        .join(version_chunks, version_chunks.c.chunk_id == chunks.c.id)
        .where(version_chunks.c.document_id == document_id, version_chunks.c.version == version, ~cached)
        .group_by(chunks.c.input_hash)
        .order_by(func.min(version_chunks.c.ordinal))
    )
    return await transaction.all(statement)


async def drop_version(transaction: Transaction, document_id: str, version: int) -> None:
    """Takes a cancelled version's chunk list back, and the chunks that no other version has."""
    of_it = and_(version_chunks.c.document_id == document_id, version_chunks.c.version == version)
    await transaction.execute(delete(version_chunks).where(of_it))
    await drop_orphans(transaction, document_id)


async def drop_orphans(transaction: Transaction, document_id: str) -> None:
    """The document's chunks that no version has any more, and vectors that no other chunk uses."""
    held = exists().where(version_chunks.c.chunk_id == chunks.c.id)
    orphans = and_(chunks.c.document_id == document_id, ~held)
    dropped = await transaction.all(delete(chunks).where(orphans).returning(chunks.c.input_hash))
    await _drop_unused_vectors(transaction, [row["input_hash"] for row in dropped])


async def drop_document(transaction: Transaction, document_id: str) -> None:
    """Everything of a removed document: its chunk lists, its texts, and vectors that no other chunk uses."""
    await transaction.execute(delete(version_chunks).where(version_chunks.c.document_id == document_id))
    await drop_orphans(transaction, document_id)


async def _drop_unused_vectors(transaction: Transaction, hashes: Sequence[str]) -> None:
    used = exists().where(chunks.c.input_hash == embeddings_cache.c.input_hash)
    for start in range(0, len(hashes), _ROWS_PER_STATEMENT):
        part = hashes[start : start + _ROWS_PER_STATEMENT]
        await transaction.execute(delete(embeddings_cache).where(embeddings_cache.c.input_hash.in_(part), ~used))


async def count_document(transaction: Transaction, document_id: str) -> int:
    lists = select(func.count()).select_from(version_chunks).where(version_chunks.c.document_id == document_id)
    texts = select(func.count()).select_from(chunks).where(chunks.c.document_id == document_id)
    return int(await transaction.scalar(lists)) + int(await transaction.scalar(texts))
