"""Vectors already paid for, by (model, embedding input), and what a space's vectors add up to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ARRAY, Text, and_, bindparam, delete, func, select
from sqlalchemy.dialects.postgresql import insert

from services.stores.database import Transaction
from services.stores.prepared import Prepared
from services.stores.tables.documents import chunks, embeddings_cache, space_statistics, version_chunks

Vector = NDArray[np.float32]
_OF_SPACES = Prepared(
    select(space_statistics).where(
        space_statistics.c.model == bindparam("model"),
        space_statistics.c.space_id == func.any(bindparam("spaces", type_=ARRAY(Text))),
    )
)


async def store(transaction: Transaction, model: str, vectors: Mapping[str, Vector]) -> None:
    """`vectors` by input hash; one that is there already stays."""
    rows = [
        {"model": model, "input_hash": key, "vector": vector.astype("<f4").tobytes()} for key, vector in vectors.items()
    ]
    if rows:
        await transaction.execute(insert(embeddings_cache).on_conflict_do_nothing(), rows)


async def of_chunks(transaction: Transaction, model: str, chunk_ids: Sequence[str]) -> dict[str, bytes]:
    """Little-endian float32 bytes by chunk id, of the chunks that have a vector of this model."""
    statement = (
        select(chunks.c.id, embeddings_cache.c.vector)
        .join(embeddings_cache, embeddings_cache.c.input_hash == chunks.c.input_hash)
        .where(embeddings_cache.c.model == model, chunks.c.id.in_(list(chunk_ids)))
    )
    return {row["id"]: bytes(row["vector"]) for row in await transaction.all(statement)}


async def sum_of_version(
    transaction: Transaction, model: str, document_id: str, version: int, dimensions: int
) -> tuple[int, Vector]:
    """How many chunks the version has and the sum of their vectors."""
    statement = (
        select(embeddings_cache.c.vector)
        .join(chunks, chunks.c.input_hash == embeddings_cache.c.input_hash)
        .join(version_chunks, version_chunks.c.chunk_id == chunks.c.id)
        .where(
            embeddings_cache.c.model == model,
            version_chunks.c.document_id == document_id,
            version_chunks.c.version == version,
        )
    )
    rows = await transaction.all(statement)
    total = np.zeros(dimensions, np.float32)
    for row in rows:
        total += np.frombuffer(row["vector"], "<f4")
    return len(rows), total


async def shift_space(transaction: Transaction, space_id: str, model: str, chunks_added: int, added: Vector) -> None:
    """Adds (or, with negative numbers, takes away) a version's share of its space's statistics, under the row's lock."""
    empty = {"space_id": space_id, "model": model, "chunks": 0, "vector_sum": np.zeros_like(added, "<f4").tobytes()}
    await transaction.execute(insert(space_statistics).values(**empty).on_conflict_do_nothing())
    of_space = and_(space_statistics.c.space_id == space_id, space_statistics.c.model == model)
    row = (await transaction.all(select(space_statistics).where(of_space).with_for_update()))[0]
    total = np.frombuffer(row["vector_sum"], "<f4") + added
    values = {"chunks": max(0, row["chunks"] + chunks_added), "vector_sum": total.astype("<f4").tobytes()}
    await transaction.execute(
        insert(space_statistics)
        .values(space_id=space_id, model=model, **values)
        .on_conflict_do_update(index_elements=["space_id", "model"], set_=values)
    )


async def mean_of_spaces(transaction: Transaction, model: str, spaces: Sequence[str]) -> tuple[int, Vector | None]:
    """Chunks and mean vector over these spaces."""
    rows = await transaction.all(_OF_SPACES, {"model": model, "spaces": list(spaces)})
    count = sum(int(row["chunks"]) for row in rows)
    if not count:
        return 0, None
    total = np.sum([np.frombuffer(row["vector_sum"], "<f4") for row in rows], axis=0)
    return count, (total / count).astype(np.float32)


async def forget_space(transaction: Transaction, space_id: str) -> None:
    await transaction.execute(delete(space_statistics).where(space_statistics.c.space_id == space_id))


async def count(transaction: Transaction) -> int:
    return int(await transaction.scalar(select(func.count()).select_from(embeddings_cache)))
