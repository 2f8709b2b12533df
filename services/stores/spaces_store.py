"""Spaces as callers name them: by id or by name; unknown and hidden look the same."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Text, bindparam, or_, select, update

from schemas.access import Actor
from schemas.errors import Forbidden, NotFound
from services.stores.database import Row, Transaction
from services.stores.prepared import Prepared
from services.stores.readable import ACTORS_KEPT, spaces_with_role
from services.stores.tables.identity import spaces


async def resolve(transaction: Transaction, actor: Actor, name: str, least: str = "viewer") -> Row:
    """The space called `name` (id or name). NotFound when the actor has no grant on it, Forbidden when the role is too small."""
    row = next(iter(await transaction.all(_visible(actor), {"called": name})), None)
    if row is None:
        raise NotFound(f"There is no space '{name}' that this key can see.", space=name)
    if least != "viewer" and not await has_role(transaction, actor, row["id"], least):
        raise Forbidden(f"This needs the role '{least}' on the space '{row['name']}'.", space=row["id"], needs=least)
    return row


@lru_cache(ACTORS_KEPT)
def _visible(actor: Actor) -> Prepared:
    named = or_(spaces.c.id == bindparam("called", type_=Text), spaces.c.name == bindparam("called", type_=Text))
    living = (spaces.c.tombstoned_at.is_(None), spaces.c.id.in_(spaces_with_role(actor)))
    return Prepared(select(spaces).where(named, *living))


async def has_role(transaction: Transaction, actor: Actor, space_id: str, least: str) -> bool:
    held = select(spaces.c.id).where(spaces.c.id == space_id, spaces.c.id.in_(spaces_with_role(actor, least)))
    return await transaction.scalar(held) is not None


async def resolve_all(transaction: Transaction, actor: Actor, names: Sequence[str] | None) -> list[str]:
    """Ids of the named spaces, or of every space the actor can see."""
    if names:
        return [str((await resolve(transaction, actor, name))["id"]) for name in names]
    visible = select(spaces.c.id).where(spaces.c.id.in_(spaces_with_role(actor)))
    return [row["id"] for row in await transaction.all(visible.order_by(spaces.c.id))]


async def tombstone(transaction: Transaction, space_id: str) -> None:
    """From here on the space and all in it are hidden; RemoveSpace empties it."""
    of_space = spaces.c.id == space_id
    await transaction.execute(update(spaces).where(of_space).values(tombstoned_at=transaction.now))


async def leave_skeleton(transaction: Transaction, space_id: str) -> None:
    emptied: dict[str, Any] = {"name": None, "settings": {}, "removed_at": transaction.now}
    await transaction.execute(update(spaces).where(spaces.c.id == space_id).values(**emptied))
