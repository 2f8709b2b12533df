"""The people of a tenant. Events name them by id and role; e-mail addresses and names stay in the row."""

from __future__ import annotations

from typing import Any

from schemas.access import Actor
from schemas.domain_events import EventDraft
from schemas.errors import Conflict, NotFound
from schemas.identifiers import new_id
from schemas.identity import UserChange, UserDraft, UserView
from services.stores import event_log, idempotency_store, identity_store
from services.stores.database import Database, Transaction


class Users:
    """Makes, lists and changes users. The caller has checked the scope `admin`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, actor: Actor, draft: UserDraft) -> UserView:
        async with self._database.begin(actor.tenant) as transaction:
            await _hold_people(transaction)
            await _require_free(transaction, draft.email)
            view = UserView(id=new_id(), email=draft.email, name=draft.name, role=draft.role, disabled=False)
            await add(transaction, view, by=actor.user)
            await idempotency_store.complete(transaction, view)
        return view

    async def page(self, actor: Actor, after: str, limit: int) -> list[UserView]:
        async with self._database.begin(actor.tenant) as transaction:
            return [_view(row) for row in await identity_store.users_after(transaction, after, limit)]

    async def get(self, actor: Actor, user_id: str) -> UserView:
        async with self._database.begin(actor.tenant) as transaction:
            return _view(await require(transaction, user_id))

    async def change(self, actor: Actor, user_id: str, change: UserChange) -> UserView:
        """Disabling holds at once for every key of the user. The last admin can be neither disabled nor demoted."""
        async with self._database.begin(actor.tenant) as transaction:
            await _hold_people(transaction)
            old = _view(await require(transaction, user_id))
            wanted = change.model_dump(exclude_none=True)
            new = old.model_copy(update=wanted)
            if new.email.lower() != old.email.lower():
                await _require_free(transaction, new.email)
            if new != old:
                await _store_change(transaction, actor, old, new)
            await _require_an_admin(transaction)
        return new


async def add(transaction: Transaction, view: UserView, *, by: str) -> None:
    """The row and its event."""
    await identity_store.add_user(transaction, view.id, email=view.email, name=view.name, role=view.role)
    draft = EventDraft(stream=f"user:{view.id}", type="user.created", data={"role": view.role, "disabled": False})
    await event_log.append(transaction, draft, actor=by)
    await identity_store.announce(transaction)


async def require(transaction: Transaction, user_id: str) -> Any:
    row = await identity_store.user(transaction, user_id)
    if row is None:
        raise NotFound("There is no user with this id.")
    return row


async def _store_change(transaction: Transaction, actor: Actor, old: UserView, new: UserView) -> None:
    disabled_at = transaction.now if new.disabled else None
    values: dict[str, Any] = {"email": new.email, "name": new.name, "role": new.role}
    if new.disabled != old.disabled:
        values["disabled_at"] = disabled_at
    await identity_store.change_user(transaction, new.id, values)
    draft = EventDraft(stream=f"user:{new.id}", type="user.changed", data={"role": new.role, "disabled": new.disabled})
    await event_log.append(transaction, draft, actor=actor.user)
    await identity_store.announce(transaction)


async def _hold_people(transaction: Transaction) -> None:
    """One change of people at a time, so that two of them cannot take one address or both last admins."""
    await transaction.lock(f"people:{transaction.tenant}")


async def _require_free(transaction: Transaction, email: str) -> None:
    if await identity_store.user_by_email(transaction, email) is not None:
        raise Conflict("Another user has this e-mail address.", type="email_taken")


async def _require_an_admin(transaction: Transaction) -> None:
    if await identity_store.active_admins(transaction) == 0:
        raise Conflict("A tenant keeps at least one active admin; make another one first.", type="last_admin")


def _view(row: Any) -> UserView:
    disabled = row["disabled_at"] is not None
    return UserView(id=row["id"], email=row["email"], name=row["name"], role=row["role"], disabled=disabled)
