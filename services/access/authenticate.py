"""Who holds a key: one indexed query per request, so revoking a key or disabling a user holds at once."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.access import Actor, Scope, TenantRole
from schemas.errors import Forbidden, Unauthenticated
from services.access.api_key import MAX_KEY_CHARS, key_hash
from services.access.load_access import effective_scopes
from services.stores import api_keys_store
from services.stores.database import Database


@dataclass(frozen=True)
class Caller:
    """An authenticated request: the actor, and what role and key let it do now."""

    actor: Actor
    role: TenantRole
    scopes: frozenset[Scope]

    @property
    def key_id(self) -> str:
        assert self.actor.key is not None
        return self.actor.key

    @property
    def is_admin(self) -> bool:
        return "admin" in self.scopes

    def require(self, *any_of: Scope) -> None:
        """Forbidden unless the key has one of these scopes now."""
        if self.scopes.isdisjoint(any_of):
            named = " or ".join(f"'{scope}'" for scope in any_of)
            raise Forbidden(f"This needs a key with the scope {named}.", needs=list(any_of))


async def authenticate(database: Database, key: str) -> Caller:
    """Unauthenticated says the same for unknown, revoked and expired keys and for disabled users."""
    secret_hash = key_hash(key[:MAX_KEY_CHARS])
    async with database.every_tenant("the key says which tenant it belongs to") as transaction:
        row = await api_keys_store.usable_by_hash(transaction, secret_hash)
    if row is None:
        raise Unauthenticated("This API key is unknown, revoked or expired.")
    actor = Actor(tenant=row["tenant"], user=row["user_id"], key=row["key_id"])
    return Caller(actor, row["role"], effective_scopes(row["role"], row["scopes"]))
