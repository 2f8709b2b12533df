"""The door to agents: stored configuration that anyone in the tenant may use, changed by its owner or an admin."""

from __future__ import annotations

from schemas.agents import AgentDraft, AgentView
from schemas.errors import Forbidden, InvalidRequest, NotFound
from schemas.identifiers import new_id
from services.access.authenticate import Caller
from services.agents.registry import ToolRegistry
from services.agents.tools import delegate
from services.gateways.model_names import EXTRACTIVE, check_model_name
from services.stores import agents_store, idempotency_store, spaces_store
from services.stores.database import Database, Row, Transaction

_UNKNOWN = "There is no agent with this id."


class Agents:
    """Rights of a turn are its caller's, so using another's agent gives nobody anything."""

    def __init__(self, database: Database, registry: ToolRegistry) -> None:
        self._database = database
        self._registry = registry

    async def create(self, caller: Caller, draft: AgentDraft) -> AgentView:
        async with self._database.begin(caller.actor.tenant) as transaction:
            await self._check(transaction, caller, draft)
            view = await agents_store.create(transaction, new_id(), caller.actor.user, draft)
            await idempotency_store.complete(transaction, view)
        return view

    async def change(self, caller: Caller, agent_id: str, draft: AgentDraft) -> AgentView:
        async with self._database.begin(caller.actor.tenant) as transaction:
            agent = await self._own(transaction, caller, agent_id)
            await self._check(transaction, caller, draft)
            return await agents_store.change(transaction, agent, draft)

    async def remove(self, caller: Caller, agent_id: str) -> None:
        async with self._database.begin(caller.actor.tenant) as transaction:
            await self._own(transaction, caller, agent_id)
            await agents_store.remove(transaction, agent_id)

    async def get(self, caller: Caller, agent_id: str) -> AgentView:
        async with self._database.begin(caller.actor.tenant) as transaction:
            row = await agents_store.get(transaction, agent_id)
        if row is None:
            raise NotFound(_UNKNOWN)
        return agents_store.view(row)

    async def newest(self, caller: Caller, before: str | None, limit: int) -> list[AgentView]:
        async with self._database.begin(caller.actor.tenant) as transaction:
            return await agents_store.newest_first(transaction, before, limit)

    async def _check(self, transaction: Transaction, caller: Caller, draft: AgentDraft) -> None:
        self._registry.require([*draft.tools, *draft.always_ask])
        if delegate.NAME in draft.always_ask:
            raise InvalidRequest(
                f"'{delegate.NAME}' itself does nothing that could be asked for; name the tools of what it delegates."
            )
        if draft.model is not None and check_model_name(draft.model) == EXTRACTIVE:
            raise InvalidRequest("The extractive model quotes passages and cannot act; name a chat model.")
        if draft.spaces is not None:
            await spaces_store.resolve_all(transaction, caller.actor, draft.spaces)

    @staticmethod
    async def _own(transaction: Transaction, caller: Caller, agent_id: str) -> Row:
        row = await agents_store.get(transaction, agent_id, for_update=True)
        if row is None:
            raise NotFound(_UNKNOWN)
        if row["owner"] != caller.actor.user and not caller.is_admin:
            raise Forbidden("Only the agent's owner or an admin may change it.")
        return row
