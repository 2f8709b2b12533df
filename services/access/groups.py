"""Groups of users. A grant or a reader `group:<id>` reaches whoever is a member at that moment."""

from __future__ import annotations

from schemas.access import Actor
from schemas.domain_events import EventDraft
from schemas.errors import Conflict, NotFound
from schemas.identifiers import new_id, space_stream
from schemas.identity import GroupDraft, GroupView
from services.access import users
from services.stores import event_log, idempotency_store, identity_store
from services.stores.database import Database, Transaction


class Groups:
    """Makes, lists and removes groups and their members. The caller has checked the scope `admin`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, actor: Actor, draft: GroupDraft) -> GroupView:
        async with self._database.begin(actor.tenant) as transaction:
            await transaction.lock(f"groups:{transaction.tenant}")
            if await identity_store.group_by_name(transaction, draft.name) is not None:
                raise Conflict("Another group has this name.", type="name_taken")
            view = GroupView(id=new_id(), name=draft.name)
            await identity_store.add_group(transaction, view.id, view.name)
            await _append(transaction, actor, view.id, "group.created")
            await idempotency_store.complete(transaction, view)
        return view

    async def page(self, actor: Actor, after: str, limit: int) -> list[GroupView]:
        async with self._database.begin(actor.tenant) as transaction:
            rows = await identity_store.groups_after(transaction, after, limit)
            return [GroupView(id=row["id"], name=row["name"]) for row in rows]

    async def remove(self, actor: Actor, group_id: str) -> None:
        """The group's grants go with it, each with its own event."""
        async with self._database.begin(actor.tenant) as transaction:
            await _require(transaction, group_id)
            of_spaces = await identity_store.remove_group(transaction, group_id)
            await _append(transaction, actor, group_id, "group.removed")
            for space in of_spaces:
                data = {"principal": f"group:{group_id}"}
                draft = EventDraft(stream=space_stream(space), type="grant.taken", data=data)
                await event_log.append(transaction, draft, actor=actor.user)

    async def add_member(self, actor: Actor, group_id: str, user_id: str) -> None:
        async with self._database.begin(actor.tenant) as transaction:
            await _require(transaction, group_id)
            await users.require(transaction, user_id)
            if await identity_store.add_member(transaction, group_id, user_id):
                await _append(transaction, actor, group_id, "group.member_added", user_id)

    async def remove_member(self, actor: Actor, group_id: str, user_id: str) -> None:
        """Removing someone who is no member changes nothing and is no error."""
        async with self._database.begin(actor.tenant) as transaction:
            await _require(transaction, group_id)
            await users.require(transaction, user_id)
            if await identity_store.remove_member(transaction, group_id, user_id):
                await _append(transaction, actor, group_id, "group.member_removed", user_id)


async def _require(transaction: Transaction, group_id: str) -> None:
    if await identity_store.group(transaction, group_id) is None:
        raise NotFound("There is no group with this id.")


async def _append(transaction: Transaction, actor: Actor, group_id: str, type: str, user_id: str | None = None) -> None:
    data = {"user_id": user_id} if user_id else {}
    await event_log.append(transaction, EventDraft(stream=f"group:{group_id}", type=type, data=data), actor=actor.user)
    await identity_store.announce(transaction)
