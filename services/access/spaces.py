"""Spaces and who has which role in them.

Managers keep their space's grants; admins may too, since they manage identity, but see no document by it.
"""

from __future__ import annotations

from typing import Any

from schemas.domain_events import EventDraft
from schemas.errors import Conflict, Forbidden, InvalidRequest, NotFound
from schemas.identifiers import new_id, space_stream
from schemas.identity import GrantDraft, GrantView, SpaceDraft, SpaceView
from services.access.authenticate import Caller
from services.stores import event_log, idempotency_store, identity_store, space_grants_store
from services.stores.database import Database, Transaction

EVERYONE = "tenant"


class Spaces:
    """Makes and shows spaces, gives and takes grants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, caller: Caller, draft: SpaceDraft) -> SpaceView:
        user = caller.actor.user
        async with self._database.begin(caller.actor.tenant) as transaction:
            space_id, settings = new_id(), draft.settings or {}
            if not await space_grants_store.add_space(transaction, space_id, draft.name, settings):
                raise Conflict("Another space has this name.", type="name_taken")
            await space_grants_store.first_manager(transaction, space_id, user)
            await _append(transaction, user, space_id, "space.created", {})
            await _append(transaction, user, space_id, "grant.given", {"principal": f"user:{user}", "role": "manager"})
            view = SpaceView(id=space_id, name=draft.name, settings=settings, created_at=transaction.now)
            await idempotency_store.complete(transaction, view)
        return view

    async def page(self, caller: Caller, after: str, limit: int) -> list[SpaceView]:
        async with self._database.begin(caller.actor.tenant) as transaction:
            rows = await space_grants_store.visible_after(
                transaction, caller.actor, sees_all=caller.is_admin, after=after, limit=limit
            )
            return [_view(row) for row in rows]

    async def get(self, caller: Caller, name: str) -> SpaceView:
        """By id or name; an unknown and a hidden space are the same NotFound."""
        async with self._database.begin(caller.actor.tenant) as transaction:
            return _view(await _visible(transaction, caller, name))

    async def grants(self, caller: Caller, name: str, after: str, limit: int) -> list[GrantView]:
        async with self._database.begin(caller.actor.tenant) as transaction:
            space = await _managed(transaction, caller, name)
            rows = await space_grants_store.grants_after(transaction, space["id"], after, limit)
            return [GrantView(principal=row["principal"], role=row["role"]) for row in rows]

    async def give(self, caller: Caller, name: str, principal: str, draft: GrantDraft) -> None:
        async with self._database.begin(caller.actor.tenant) as transaction:
            space = await _managed(transaction, caller, name)
            await _require_principal(transaction, principal)
            if await space_grants_store.give(transaction, space["id"], principal, draft.role):
                data = {"principal": principal, "role": draft.role}
                await _append(transaction, caller.actor.user, space["id"], "grant.given", data)

    async def take(self, caller: Caller, name: str, principal: str) -> None:
        """Taking what nobody had changes nothing and is no error."""
        async with self._database.begin(caller.actor.tenant) as transaction:
            space = await _managed(transaction, caller, name)
            _check_form(principal)
            if await space_grants_store.take(transaction, space["id"], principal):
                await _append(transaction, caller.actor.user, space["id"], "grant.taken", {"principal": principal})


async def _visible(transaction: Transaction, caller: Caller, name: str) -> Any:
    row = await space_grants_store.visible(transaction, caller.actor, name, sees_all=caller.is_admin)
    if row is None:
        raise NotFound(f"There is no space '{name}' that this key can see.")
    return row


async def _managed(transaction: Transaction, caller: Caller, name: str) -> Any:
    """The space, when the caller manages it or is an admin; Forbidden when they only see it."""
    row = await _visible(transaction, caller, name)
    if caller.is_admin:
        return row
    managed = await space_grants_store.visible(transaction, caller.actor, row["id"], sees_all=False, least="manager")
    if managed is None:
        raise Forbidden("This needs the role 'manager' on the space.", needs="manager")
    return row


def _check_form(principal: str) -> tuple[str, str]:
    kind, _, id = principal.partition(":")
    if principal != EVERYONE and (kind not in {"user", "group"} or not id):
        raise InvalidRequest("A principal is `user:<id>`, `group:<id>` or `tenant`.", principal=principal)
    return kind, id


async def _require_principal(transaction: Transaction, principal: str) -> None:
    kind, id = _check_form(principal)
    if principal == EVERYONE:
        return
    found = await (identity_store.user if kind == "user" else identity_store.group)(transaction, id)
    if found is None:
        raise NotFound(f"There is no {kind} with this id.")


async def _append(transaction: Transaction, user: str, space_id: str, type: str, data: dict[str, Any]) -> None:
    await event_log.append(transaction, EventDraft(stream=space_stream(space_id), type=type, data=data), actor=user)
    await identity_store.announce(transaction)


def _view(row: Any) -> SpaceView:
    return SpaceView(id=row["id"], name=row["name"], settings=row["settings"], created_at=row["created_at"])
