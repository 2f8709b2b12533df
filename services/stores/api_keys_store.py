"""API keys by hash, and everything a request needs to know of its caller, in one indexed query."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

from sqlalchemy import Select, and_, bindparam, func, insert, null, or_, select, update

from schemas.access import Actor
from services.stores.database import Row, Transaction
from services.stores.prepared import Prepared
from services.stores.readable import ACTORS_KEPT, principals
from services.stores.tables.identity import api_keys, memberships, space_grants, spaces, users


def _usable() -> Select[tuple[str, str, str, list[str] | None, str, datetime | None]]:
    """Keys that count now: not revoked, not expired, of a user who is not disabled."""
    of_user = and_(users.c.id == api_keys.c.user_id, users.c.tenant == api_keys.c.tenant)
    return (
        select(
            api_keys.c.tenant,
            api_keys.c.id.label("key_id"),
            api_keys.c.user_id,
            api_keys.c.scopes,
            users.c.role,
            api_keys.c.expires_at,
        )
        .join(users, of_user)
        .where(
            api_keys.c.revoked_at.is_(None),
            users.c.disabled_at.is_(None),
            or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > func.now()),
        )
    )


_USABLE_BY_HASH = Prepared(_usable().where(api_keys.c.hash == bindparam("secret_hash")))
"""Built once: every request asks it."""


async def usable_by_hash(transaction: Transaction, secret_hash: str) -> Row | None:
    """Tenant, user, role and scopes of the key with this hash. The transaction is over all tenants: the key names its own."""
    return await transaction.one_or_none(_USABLE_BY_HASH, {"secret_hash": secret_hash})


async def rights(transaction: Transaction, actor: Actor) -> Row | None:
    """Role, key scopes, group ids and (space, role) pairs by the rows of this moment; null when disabled or revoked.

    `grants` has a pair for every grant that reaches the user; a space can come with more than one role.
    """
    return await transaction.one_or_none(_rights(actor))


@lru_cache(ACTORS_KEPT)
def _rights(actor: Actor) -> Prepared:
    """Built once per actor: it is asked with every search."""
    granted = (
        select(func.json_agg(func.json_build_array(space_grants.c.space_id, space_grants.c.role)))
        .join(spaces, and_(spaces.c.id == space_grants.c.space_id, spaces.c.tombstoned_at.is_(None)))
        .where(principals(actor))
    )
    in_groups = select(func.array_agg(memberships.c.group_id)).where(memberships.c.user_id == actor.user)
    columns = (in_groups.scalar_subquery().label("groups"), granted.scalar_subquery().label("grants"))
    if actor.key is None:
        system = select(users.c.role, null().label("scopes"), *columns)
        return Prepared(system.where(users.c.id == actor.user, users.c.disabled_at.is_(None)))
    of_key = _usable().add_columns(*columns).where(api_keys.c.id == actor.key, api_keys.c.user_id == actor.user)
    return Prepared(of_key)


async def add(
    transaction: Transaction,
    key_id: str,
    *,
    secret_hash: str,
    user_id: str,
    scopes: list[str] | None,
    expires_at: datetime | None,
) -> None:
    row = {
        "id": key_id,
        "hash": secret_hash,
        "user_id": user_id,
        "scopes": scopes,
        "expires_at": expires_at,
        "created_at": transaction.now,
    }
    await transaction.execute(insert(api_keys).values(**row))


async def get(transaction: Transaction, key_id: str) -> Row | None:
    return await transaction.one_or_none(select(api_keys).where(api_keys.c.id == key_id))


async def revoke(transaction: Transaction, key_id: str) -> bool:
    """False when it was revoked before."""
    live = (api_keys.c.id == key_id) & api_keys.c.revoked_at.is_(None)
    revoked = update(api_keys).where(live).values(revoked_at=transaction.now).returning(api_keys.c.id)
    return await transaction.scalar(revoked) is not None


async def keys_after(transaction: Transaction, after: str, limit: int) -> list[Row]:
    statement = select(api_keys).where(api_keys.c.id > after).order_by(api_keys.c.id).limit(limit)
    return list(await transaction.all(statement))
