"""Many live chunks without the cost of ingesting them: rows and index points written straight, with made-up vectors."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Table, insert, text

from schemas.access import SPACE_READERS, index_readers
from schemas.identifiers import new_id
from schemas.index_records import IndexedChunk
from services.documents.chunk_identity import chunk_id
from services.retrieval.index_tokens import chunk_tokens
from services.stores.chunks_store import input_hash
from services.stores.tables.documents import chunks, document_versions, documents, version_chunks
from tests.bench import material
from tests.bench.in_process import InProcess

CHUNKS_OF_DOCUMENT = 20
SENTENCES_OF_CHUNK = 5
DOCUMENTS_AT_ONCE = 100
TOPICS = 200
TOPIC_SHARE = 0.6
"""Vectors of a document lie around one of some topics, as those of real text do."""

WRITTEN_AT = datetime(2025, 1, 1, tzinfo=UTC)

Row = dict[str, Any]
Rows = dict[Table, list[Row]]


async def fill(plain: InProcess, space: str, first: int, chunks_wanted: int) -> list[str]:
    """Adds documents `first / CHUNKS_OF_DOCUMENT` and on; gives some of the new texts to ask about."""
    asked_about: list[str] = []
    numbers = range(first // CHUNKS_OF_DOCUMENT, chunks_wanted // CHUNKS_OF_DOCUMENT)
    for start in range(numbers.start, numbers.stop, DOCUMENTS_AT_ONCE):
        rows, points = _part(plain, space, numbers[start - numbers.start :][:DOCUMENTS_AT_ONCE])
        async with plain.services.engines.database.begin(plain.admin.actor.tenant) as transaction:
            for table, values in rows.items():
                await transaction.execute(insert(table), values)
        await plain.services.engines.vectors.upsert(points)
        await plain.services.engines.keywords.upsert(points)
        asked_about += [row["text"] for row in rows[chunks][::CHUNKS_OF_DOCUMENT]]
    async with plain.services.engines.database.every_tenant("a benchmark has filled tables") as transaction:
        for table in (chunks, version_chunks, documents, document_versions):
            await transaction.execute(text(f"ANALYZE {table.name}"))
    return asked_about


def _part(plain: InProcess, space: str, numbers: range) -> tuple[Rows, list[IndexedChunk]]:
    rows: Rows = {documents: [], document_versions: [], chunks: [], version_chunks: []}
    points: list[IndexedChunk] = []
    for number in numbers:
        rng = random.Random(f"synthetic {number}")
        document = _document(plain, space, number)
        rows[documents].append(document)
        rows[document_versions].append(_version(document))
        for ordinal, vector in enumerate(_vectors(number, plain.services.engines.model.dimensions)):
            content = _content(document["id"], material.paragraph(rng, SENTENCES_OF_CHUNK))
            rows[chunks].append(content)
            rows[version_chunks].append(_place(content, ordinal))
            points.append(_point(plain, document, content, vector))
    return rows, points


def _vectors(number: int, dimensions: int) -> NDArray[np.float32]:
    """Unit vectors, shape (CHUNKS_OF_DOCUMENT, dimensions)."""
    topic = np.random.default_rng(number % TOPICS).standard_normal(dimensions)
    own = np.random.default_rng(TOPICS + number).standard_normal((CHUNKS_OF_DOCUMENT, dimensions))
    mixed = TOPIC_SHARE * topic + (1 - TOPIC_SHARE) * own
    unit: NDArray[np.float32] = (mixed / np.linalg.norm(mixed, axis=1, keepdims=True)).astype("<f4")
    return unit


def _document(plain: InProcess, space: str, number: int) -> Row:
    return {
        "id": new_id(),
        "space_id": space,
        "source": "upload",
        "external_id": f"{number}.md",
        "title": f"Register {number}",
        "state": "ready",
        "stage": "ready",
        "live_version": 1,
        "newest_version": 1,
        "owner": plain.admin.actor.user,
        "readers": [SPACE_READERS],
        "tags": [],
        "created_at": WRITTEN_AT,
        "updated_at": WRITTEN_AT,
    }


def _version(document: Row) -> Row:
    return {
        "document_id": document["id"],
        "number": 1,
        "media_type": "text/markdown",
        "state": "ready",
        "created_at": WRITTEN_AT,
        "published_at": WRITTEN_AT,
    }


def _content(document_id: str, words: str) -> Row:
    return {
        "id": chunk_id(document_id, words, 0),
        "document_id": document_id,
        "text_hash": input_hash(words),
        "input_hash": input_hash(words),
        "text": words,
        "embedding_input": words,
        "tokens": len(words) // 4,
    }


def _place(content: Row, ordinal: int) -> Row:
    start = ordinal * (len(content["text"]) + 2)
    return {
        "document_id": content["document_id"],
        "version": 1,
        "ordinal": ordinal,
        "chunk_id": content["id"],
        "start": start,
        "end": start + len(content["text"]),
        "heading_path": [],
        "kind": "text",
    }


def _point(plain: InProcess, document: Row, content: Row, vector: NDArray[np.float32]) -> IndexedChunk:
    tokens = chunk_tokens(document["title"], [], "", content["text"])
    return IndexedChunk(
        id=content["id"],
        tenant=plain.admin.actor.tenant,
        space=document["space_id"],
        document=document["id"],
        access_version=1,
        readers=index_readers(document["space_id"], document["owner"], document["readers"]),
        media_type="text/markdown",
        source="upload",
        updated_at=int(WRITTEN_AT.timestamp()),
        model=plain.services.engines.model.name,
        vector=vector.tobytes(),
        title_tokens=tokens.title,
        body_tokens=tokens.body,
        exact_tokens=tokens.exact,
    )
