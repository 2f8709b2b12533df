"""Users, groups and memberships of a tenant: plain reads and writes; the services above write the events."""

from __future__ import annotations

from typing import Any

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from services.stores.database import Row, Transaction
from services.stores.tables.identity import groups, memberships, space_grants, tenants, users

ACCESS_CHANNEL = "perdure_access"


async def announce(transaction: Transaction) -> None:
    """Tells every process that rights in this tenant have changed; open streams then look again (invariant 9)."""
    await transaction.notify(ACCESS_CHANNEL, transaction.tenant)


async def add_tenant(transaction: Transaction, name: str) -> bool:
    """False when the tenant was there. Its id is the transaction's tenant."""
    row = upsert(tenants).values(id=transaction.tenant, name=name, created_at=transaction.now)
    added = row.on_conflict_do_nothing(index_elements=["id"]).returning(tenants.c.id)
    return await transaction.scalar(added) is not None


async def user(transaction: Transaction, user_id: str, *, for_update: bool = False) -> Row | None:
    statement = select(users).where(users.c.id == user_id)
    return await transaction.one_or_none(statement.with_for_update() if for_update else statement)


async def user_by_email(transaction: Transaction, email: str) -> Row | None:
    statement = select(users).where(func.lower(users.c.email) == email.lower())
    return next(iter(await transaction.all(statement)), None)


async def add_user(transaction: Transaction, user_id: str, *, email: str, name: str, role: str) -> None:
    row = {"id": user_id, "email": email, "name": name, "role": role, "created_at": transaction.now}
    await transaction.execute(insert(users).values(**row))


async def change_user(transaction: Transaction, user_id: str, values: dict[str, Any]) -> None:
    await transaction.execute(update(users).where(users.c.id == user_id).values(**values))


async def active_admins(transaction: Transaction) -> int:
    statement = select(func.count()).select_from(users).where(users.c.role == "admin", users.c.disabled_at.is_(None))
    return int(await transaction.scalar(statement))


async def users_after(transaction: Transaction, after: str, limit: int) -> list[Row]:
    statement = select(users).where(users.c.id > after).order_by(users.c.id).limit(limit)
    return list(await transaction.all(statement))


async def group(transaction: Transaction, group_id: str) -> Row | None:
    return await transaction.one_or_none(select(groups).where(groups.c.id == group_id))


async def group_by_name(transaction: Transaction, name: str) -> Row | None:
    return await transaction.one_or_none(select(groups).where(groups.c.name == name))


async def groups_after(transaction: Transaction, after: str, limit: int) -> list[Row]:
    statement = select(groups).where(groups.c.id > after).order_by(groups.c.id).limit(limit)
    return list(await transaction.all(statement))


async def add_group(transaction: Transaction, group_id: str, name: str) -> None:
    await transaction.execute(insert(groups).values(id=group_id, name=name, created_at=transaction.now))


async def remove_group(transaction: Transaction, group_id: str) -> list[str]:
    """Removes the group with its memberships and grants; the spaces it had grants on. Its id is never used again."""
    taken = delete(space_grants).where(space_grants.c.principal == f"group:{group_id}")
    of_spaces = [row["space_id"] for row in await transaction.all(taken.returning(space_grants.c.space_id))]
    await transaction.execute(delete(memberships).where(memberships.c.group_id == group_id))
    await transaction.execute(delete(groups).where(groups.c.id == group_id))
    return sorted(of_spaces)


async def add_member(transaction: Transaction, group_id: str, user_id: str) -> bool:
    """False when the user was a member before."""
    row = upsert(memberships).values(group_id=group_id, user_id=user_id).on_conflict_do_nothing()
    return await transaction.scalar(row.returning(memberships.c.user_id)) is not None


async def remove_member(transaction: Transaction, group_id: str, user_id: str) -> bool:
    """False when the user was no member."""
    member = (memberships.c.group_id == group_id) & (memberships.c.user_id == user_id)
    return await transaction.scalar(delete(memberships).where(member).returning(memberships.c.user_id)) is not None


async def members_after(transaction: Transaction, group_id: str, after: str, limit: int) -> list[Row]:
    statement = (
        select(users)
        .join(memberships, memberships.c.user_id == users.c.id)
        .where(memberships.c.group_id == group_id, users.c.id > after)
        .order_by(users.c.id)
        .limit(limit)
    )
    return list(await transaction.all(statement))
