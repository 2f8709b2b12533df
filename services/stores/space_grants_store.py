"""Spaces as their managers keep them, and who has which role in them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import delete, insert, or_, select
from sqlalchemy.dialects.postgresql import insert as upsert

from schemas.access import Actor
from services.stores.database import Row, Transaction
from services.stores.readable import spaces_with_role
from services.stores.tables.identity import space_grants, spaces


async def add_space(transaction: Transaction, space_id: str, name: str, settings: dict[str, Any]) -> bool:
    """False when a living space has this name."""
    row = upsert(spaces).values(id=space_id, name=name, settings=settings, created_at=transaction.now)
    added = row.on_conflict_do_nothing(
        index_elements=["tenant", "name"], index_where=spaces.c.tombstoned_at.is_(None)
    ).returning(spaces.c.id)
    return await transaction.scalar(added) is not None


async def visible(
    transaction: Transaction, actor: Actor, name: str, *, sees_all: bool, least: str = "viewer"
) -> Row | None:
    """The living space called `name` (id or name) where the actor has a grant of `least`, or any when `sees_all`."""
    named = select(spaces).where(or_(spaces.c.id == name, spaces.c.name == name), spaces.c.tombstoned_at.is_(None))
    if not sees_all:
        named = named.where(spaces.c.id.in_(spaces_with_role(actor, least)))
    by_id_first = named.order_by((spaces.c.id == name).desc()).limit(1)
    return next(iter(await transaction.all(by_id_first)), None)


async def visible_after(transaction: Transaction, actor: Actor, *, sees_all: bool, after: str, limit: int) -> list[Row]:
    statement = select(spaces).where(spaces.c.tombstoned_at.is_(None), spaces.c.id > after)
    if not sees_all:
        statement = statement.where(spaces.c.id.in_(spaces_with_role(actor)))
    return list(await transaction.all(statement.order_by(spaces.c.id).limit(limit)))


async def give(transaction: Transaction, space_id: str, principal: str, role: str) -> bool:
    """False when the principal had exactly this role."""
    had = select(space_grants.c.role).where(space_grants.c.space_id == space_id, space_grants.c.principal == principal)
    if await transaction.scalar(had.with_for_update()) == role:
        return False
    row = upsert(space_grants).values(space_id=space_id, principal=principal, role=role)
    await transaction.execute(row.on_conflict_do_update(index_elements=["space_id", "principal"], set_={"role": role}))
    return True


async def take(transaction: Transaction, space_id: str, principal: str) -> bool:
    """False when there was no such grant."""
    held = (space_grants.c.space_id == space_id) & (space_grants.c.principal == principal)
    return await transaction.scalar(delete(space_grants).where(held).returning(space_grants.c.role)) is not None


async def first_manager(transaction: Transaction, space_id: str, user_id: str) -> None:
    row = {"space_id": space_id, "principal": f"user:{user_id}", "role": "manager"}
    await transaction.execute(insert(space_grants).values(**row))


async def grants_after(transaction: Transaction, space_id: str, after: str, limit: int) -> list[Row]:
    statement = (
        select(space_grants)
        .where(space_grants.c.space_id == space_id, space_grants.c.principal > after)
        .order_by(space_grants.c.principal)
        .limit(limit)
    )
    return list(await transaction.all(statement))
