"""Memories of a person: rows of theirs alone. Few enough to be compared all at once, so they need no index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, func, insert, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert

from services.stores.database import Row, Transaction
from services.stores.tables.agents import memories, memory_switches


async def enabled(transaction: Transaction, user: str) -> bool:
    """On until the person switches it off."""
    found = await transaction.scalar(select(memory_switches.c.enabled).where(memory_switches.c.user_id == user))
    return found is None or bool(found)


async def switch(transaction: Transaction, user: str, *, on: bool) -> None:
    row = upsert(memory_switches).values(user_id=user, enabled=on)
    await transaction.execute(row.on_conflict_do_update(index_elements=["user_id"], set_={"enabled": on}))


async def count(transaction: Transaction, user: str) -> int:
    """Under the lock that `add` takes: two at once could not both be the last that fits."""
    await transaction.lock(f"memories:{user}")
    return int(await transaction.scalar(select(func.count()).select_from(memories).where(memories.c.user_id == user)))


async def add(
    transaction: Transaction,
    memory_id: str,
    user: str,
    *,
    kind: str,
    text_: str,
    source: str,
    confidence: float,
    run_id: str | None,
    model: str,
    vector: list[float],
) -> Row:
    row: dict[str, Any] = {
        "id": memory_id,
        "user_id": user,
        "kind": kind,
        "text": text_,
        "source": source,
        "confidence": confidence,
        "run_id": run_id,
        "model": model,
        "vector": vector,
        "created_at": transaction.now,
        "updated_at": transaction.now,
    }
    await transaction.execute(insert(memories).values(**row))
    return row


async def change(transaction: Transaction, memory_id: str, values: dict[str, Any]) -> None:
    of_row = memories.c.id == memory_id
    await transaction.execute(update(memories).where(of_row).values(updated_at=transaction.now, **values))


async def copy_sources(transaction: Transaction, memory_id: str, run_id: str) -> None:
    """What a turn remembers may come from any document it has read."""
    statement = text(
        """
        INSERT INTO sources (record, document_id, version)
        SELECT :record, document_id, version FROM sources WHERE record = :run ON CONFLICT DO NOTHING
        """
    )
    await transaction.execute(statement, {"record": f"memory:{memory_id}", "run": f"run:{run_id}"})


async def get(transaction: Transaction, user: str, memory_id: str) -> Row | None:
    wanted = (memories.c.id == memory_id, memories.c.user_id == user)
    return await transaction.one_or_none(select(memories).where(*wanted))


async def after(transaction: Transaction, user: str, memory_id: str, limit: int) -> Sequence[Row]:
    wanted = (memories.c.user_id == user, memories.c.id > memory_id)
    return await transaction.all(select(memories).where(*wanted).order_by(memories.c.id).limit(limit))


async def remove(transaction: Transaction, user: str, memory_id: str) -> bool:
    wanted = (memories.c.id == memory_id, memories.c.user_id == user)
    return (await transaction.execute(delete(memories).where(*wanted))).rowcount > 0


async def remove_all(transaction: Transaction, user: str) -> int:
    return (await transaction.execute(delete(memories).where(memories.c.user_id == user))).rowcount
