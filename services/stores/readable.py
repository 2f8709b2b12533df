"""Who may read what, as SQL over the rows of this moment (invariants 1 and 9).

Nothing here is cached: a query that carries `readable(actor)` answers for the memberships, grants, readers, disabled users
and revoked keys that are committed when it runs. Only the text of the condition is kept from one query to the next, since
building it costs more than sending it.
"""

from __future__ import annotations

from functools import lru_cache

from sqlalchemy import ARRAY, ColumnElement, Select, Text, and_, cast, exists, false, func, literal, or_, select

from schemas.access import SPACE_READERS, Actor
from services.stores.tables.documents import documents
from services.stores.tables.identity import api_keys, memberships, space_grants, spaces, users

ACTORS_KEPT = 1_000
ROLE_RANKS = {"viewer": 1, "contributor": 2, "manager": 3}


def actor_is_active(actor: Actor) -> ColumnElement[bool]:
    """The user is not disabled, and the key, where there is one, is neither revoked nor expired."""
    user_active = exists().where(users.c.id == actor.user, users.c.disabled_at.is_(None))
    if actor.key is None:
        return user_active
    key_active = exists().where(
        api_keys.c.id == actor.key,
        api_keys.c.user_id == actor.user,
        api_keys.c.revoked_at.is_(None),
        or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > func.now()),
    )
    return and_(user_active, key_active)


def any_of(*values: str) -> ColumnElement[str]:
    """As one array: an IN list would be written out anew with every execution."""
    return func.any(cast(literal(list(values)), ARRAY(Text)))


def principals(actor: Actor) -> ColumnElement[bool]:
    """Grants that reach this user: by name, by a group they are in now, or as everyone in the tenant."""
    by_group = select(func.concat("group:", memberships.c.group_id)).where(memberships.c.user_id == actor.user)
    return or_(
        space_grants.c.principal == any_of(f"user:{actor.user}", "tenant"),
        space_grants.c.principal.in_(by_group),
    )


@lru_cache(ACTORS_KEPT)
def spaces_with_role(actor: Actor, least: str = "viewer") -> Select[tuple[str]]:
    """Ids of living spaces where the actor holds at least the role `least`."""
    roles = [role for role, rank in ROLE_RANKS.items() if rank >= ROLE_RANKS[least]]
    return (
        select(space_grants.c.space_id)
        .join(spaces, and_(spaces.c.id == space_grants.c.space_id, spaces.c.tombstoned_at.is_(None)))
        .where(principals(actor), space_grants.c.role == any_of(*roles), actor_is_active(actor))
    )


@lru_cache(ACTORS_KEPT)
def readable(actor: Actor) -> ColumnElement[bool]:
    """A condition on `documents`: alive, in a space the actor has a grant on, and meant for them."""
    in_groups = exists().where(
        memberships.c.user_id == actor.user,
        func.concat("group:", memberships.c.group_id) == func.any(documents.c.readers),
    )
    by_name = documents.c.readers.op("&&")(cast([SPACE_READERS, f"user:{actor.user}"], ARRAY(Text)))
    meant_for = or_(
        documents.c.owner == actor.user,
        documents.c.space_id.in_(spaces_with_role(actor, "manager")),
        func.coalesce(by_name, false()),
        func.coalesce(in_groups, false()),
    )
    return and_(
        documents.c.tombstoned_at.is_(None),
        documents.c.space_id.in_(spaces_with_role(actor)),
        meant_for,
    )


def readable_ids(actor: Actor, document_ids: list[str]) -> Select[tuple[str]]:
    """Which of these documents the actor may read now."""
    asked = documents.c.id == func.any(cast(literal(document_ids), ARRAY(Text)))
    return select(documents.c.id).where(asked, readable(actor))
