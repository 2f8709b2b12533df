"""The first tenant, its admin and the admin's key: made once, in one transaction, however often it is asked for."""

from __future__ import annotations

from schemas.identifiers import new_id
from schemas.identity import ApiKeyCreated, ApiKeyDraft, UserView
from services.access import api_keys, users
from services.access.api_key import new_key
from services.stores import identity_store
from services.stores.database import Database

FIRST_TENANT = "default"
FIRST_ADMIN_EMAIL = "admin@localhost"


async def bootstrap(database: Database, key: str | None = None) -> str | None:
    """The admin's key when it was made now, null when the tenant was there.

    A caller who must not lose the key to a kill between commit and writing it down makes it first
    (`api_key.new_key()`), writes it down, and passes it in.
    """
    async with database.begin(FIRST_TENANT) as transaction:
        await transaction.lock("bootstrap")
        if not await identity_store.add_tenant(transaction, name=FIRST_TENANT):
            return None
        admin = UserView(id=new_id(), email=FIRST_ADMIN_EMAIL, name="Admin", role="admin", disabled=False)
        await users.add(transaction, admin, by=admin.id)
        created = ApiKeyCreated(id=new_id(), key=key or new_key())
        await api_keys.add(transaction, created, ApiKeyDraft(user_id=admin.id), by=admin.id)
    return created.key
