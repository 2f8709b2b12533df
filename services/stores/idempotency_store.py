"""One effect per Idempotency-Key: reserved before any state, completed in the transaction that has the effect.

`complete` inside a service's own transaction makes effect and stored reply one commit, so a process killed anywhere leaves
either both or neither; a reservation without a reply whose holder went silent is then free to be taken over. Its
`created_at` is the fence: who was taken over can no longer complete, and the transaction with the late effect rolls back.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic import BaseModel
from sqlalchemy import and_, delete, select, update
from sqlalchemy.dialects.postgresql import insert

from schemas.errors import Conflict
from services.stores.database import Database, Transaction
from services.stores.tables.facts import idempotency_keys

LEASE_S = 60.0


@dataclass
class Reservation:
    """A key held by one running request. `hidden` fields of the reply are shown once and never stored."""

    tenant: str
    actor: str
    key: str
    since: datetime
    status: int
    hidden: frozenset[str] = frozenset()
    completed: bool = False


@dataclass(frozen=True)
class Replay:
    """What the key's first request was answered."""

    status: int
    response: Any


@dataclass(frozen=True)
class Busy:
    """Another request with this key is under way."""


CURRENT: ContextVar[Reservation | None] = ContextVar("idempotency_reservation", default=None)


async def reserve(
    database: Database, *, tenant: str, actor: str, key: str, body_hash: str, status: int, hours: float
) -> Reservation | Replay | Busy:
    """Holds the key, or says what became of it. Conflict when the key was used for something else."""
    async with database.begin(tenant) as transaction:
        now = transaction.now
        values = {"body_hash": body_hash, "status": None, "response": None, "created_at": now}
        values["expires_at"] = now + timedelta(hours=hours)
        row = insert(idempotency_keys).values(actor=actor, key=key, **values)
        old = idempotency_keys.c.expires_at < now
        silent = and_(
            idempotency_keys.c.status.is_(None),
            idempotency_keys.c.created_at < now - timedelta(seconds=LEASE_S),
            idempotency_keys.c.body_hash == body_hash,
        )
        taken = row.on_conflict_do_update(index_elements=["tenant", "actor", "key"], set_=values, where=old | silent)
        if await transaction.scalar(taken.returning(idempotency_keys.c.created_at)) is not None:
            return Reservation(tenant, actor, key, now, status)
        found = await transaction.one_or_none(
            select(idempotency_keys).where(idempotency_keys.c.actor == actor, idempotency_keys.c.key == key)
        )
    if found is None:
        return Busy()
    if found["body_hash"] != body_hash:
        raise Conflict(
            "This Idempotency-Key was used for another request; use a new key.", type="idempotency_key_reused"
        )
    return Busy() if found["status"] is None else Replay(found["status"], found["response"])


async def complete(transaction: Transaction, reply: BaseModel | dict[str, Any] | None) -> None:
    """Stores the reply of the request under way, if it carries a key; the last call inside the effect's transaction.

    Raises Conflict when the reservation was lost, which rolls the effect back: somebody else has it.
    """
    held = CURRENT.get()
    if held is None or held.completed:
        return
    body = reply.model_dump(mode="json") if isinstance(reply, BaseModel) else reply
    if held.hidden and isinstance(body, dict):
        body = {name: value for name, value in body.items() if name not in held.hidden}
    stored = update(idempotency_keys).where(*_mine(held)).values(status=held.status, response=body)
    if await transaction.scalar(stored.returning(idempotency_keys.c.key)) is None:
        raise Conflict("Another request with this Idempotency-Key took over; ask again.", type="idempotency_key_lost")
    held.completed = True


async def release(database: Database, held: Reservation) -> None:
    """Frees a key whose request was refused or failed before it changed anything."""
    async with database.begin(held.tenant) as transaction:
        await transaction.execute(delete(idempotency_keys).where(*_mine(held)))


async def drop_expired(transaction: Transaction) -> int:
    """Housekeeping: keys past their time; how many."""
    return (
        await transaction.execute(delete(idempotency_keys).where(idempotency_keys.c.expires_at < transaction.now))
    ).rowcount


def _mine(held: Reservation) -> tuple[Any, ...]:
    return (
        idempotency_keys.c.actor == held.actor,
        idempotency_keys.c.key == held.key,
        idempotency_keys.c.created_at == held.since,
        idempotency_keys.c.status.is_(None),
    )
