"""Keys of users: made, listed and revoked. The secret is in the reply that made it and nowhere else."""

from __future__ import annotations

from datetime import datetime

from schemas.access import Actor
from schemas.domain_events import EventDraft
from schemas.errors import InvalidRequest, NotFound
from schemas.identifiers import new_id
from schemas.identity import ApiKeyCreated, ApiKeyDraft, ApiKeyView
from services.access import users
from services.access.api_key import key_hash, new_key
from services.stores import api_keys_store, event_log, idempotency_store, identity_store
from services.stores.database import Database, Transaction

LAST_YEAR = 9_000  # later times overflow once they are shifted to another zone


class ApiKeys:
    """Makes and revokes keys. The caller has checked the scope `admin`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, actor: Actor, draft: ApiKeyDraft) -> ApiKeyCreated:
        async with self._database.begin(actor.tenant) as transaction:
            _check_expiry(draft.expires_at, transaction.now)
            await users.require(transaction, draft.user_id)
            created = ApiKeyCreated(id=new_id(), key=new_key())
            await add(transaction, created, draft, by=actor.user)
            await idempotency_store.complete(transaction, created)
        return created

    async def page(self, actor: Actor, after: str, limit: int) -> list[ApiKeyView]:
        async with self._database.begin(actor.tenant) as transaction:
            rows = await api_keys_store.keys_after(transaction, after, limit)
            return [ApiKeyView.model_validate({name: row[name] for name in ApiKeyView.model_fields}) for row in rows]

    async def revoke(self, actor: Actor, key_id: str) -> None:
        """Holds for the next request and ends open streams; revoking again changes nothing."""
        async with self._database.begin(actor.tenant) as transaction:
            if await api_keys_store.get(transaction, key_id) is None:
                raise NotFound("There is no API key with this id.")
            if await api_keys_store.revoke(transaction, key_id):
                draft = EventDraft(stream=f"key:{key_id}", type="key.revoked", data={"revoked": True})
                await event_log.append(transaction, draft, actor=actor.user)
                await identity_store.announce(transaction)


async def add(transaction: Transaction, created: ApiKeyCreated, draft: ApiKeyDraft, *, by: str) -> None:
    """The row and its event; the event has neither secret nor hash."""
    scopes = None if draft.scopes is None else sorted(set(draft.scopes))
    await api_keys_store.add(
        transaction,
        created.id,
        secret_hash=key_hash(created.key),
        user_id=draft.user_id,
        scopes=[str(scope) for scope in scopes] if scopes is not None else None,
        expires_at=draft.expires_at,
    )
    expires = draft.expires_at.isoformat() if draft.expires_at else None
    data = {"user_id": draft.user_id, "scopes": scopes, "expires_at": expires}
    await event_log.append(transaction, EventDraft(stream=f"key:{created.id}", type="key.created", data=data), actor=by)


def _check_expiry(expires_at: datetime | None, now: datetime) -> None:
    if expires_at is None:
        return
    if expires_at <= now:
        raise InvalidRequest("`expires_at` must lie in the future.")
    if expires_at.year >= LAST_YEAR:
        raise InvalidRequest(f"`expires_at` must lie before the year {LAST_YEAR}.")
