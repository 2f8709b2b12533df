"""An actor's rights as the rows of this moment give them (invariant 9); one query, nothing kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from schemas.access import Access, Actor, Scope, SpaceRole, TenantRole
from services.stores import api_keys_store
from services.stores.database import Transaction
from services.stores.readable import ROLE_RANKS

SCOPES_OF_ROLE: dict[TenantRole, frozenset[Scope]] = {
    "member": frozenset({"read", "write"}),
    "admin": frozenset({"read", "write", "admin"}),
}


def effective_scopes(role: TenantRole, key_scopes: Sequence[Scope] | None) -> frozenset[Scope]:
    """What the role has, met with what the key was given; a key without scopes has all of its user's."""
    of_role = SCOPES_OF_ROLE[role]
    return of_role if key_scopes is None else of_role & frozenset(key_scopes)


async def load_access(transaction: Transaction, actor: Actor) -> Access | None:
    """Null when the user is disabled, or the key revoked, expired or another's: then there are no rights at all."""
    row = await api_keys_store.rights(transaction, actor)
    if row is None:
        return None
    return Access(
        actor=actor,
        role=row["role"],
        groups=sorted(row["groups"] or []),
        scopes=effective_scopes(row["role"], row["scopes"]),
        spaces=_strongest(row["grants"] or []),
    )


def _strongest(grants: Iterable[tuple[str, SpaceRole]]) -> dict[str, SpaceRole]:
    """The strongest role per space of all grants that reach the user."""
    roles: dict[str, SpaceRole] = {}
    for space, role in grants:
        if space not in roles or ROLE_RANKS[role] > ROLE_RANKS[roles[space]]:
            roles[space] = role
    return dict(sorted(roles.items()))
