"""Agents: stored configuration."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from schemas.agents import AgentDraft, AgentView
from services.api.authentication import KeyedRoute, Reader, Writer
from services.api.idempotency import OnceKey
from services.api.pagination import Page, Paging
from services.api.state import ServingRole

router = APIRouter(route_class=KeyedRoute, tags=["agents"])
AgentId = Annotated[str, Path(max_length=200)]


@router.post("/agents", status_code=201, response_model=AgentView)
async def create_agent(
    wanted: AgentDraft, caller: Writer, container: ServingRole, once: OnceKey
) -> AgentView | Response:
    """A new agent. Whoever uses it acts with their own rights, never with those of who made it."""
    return await once(wanted, lambda: container.agents.create(caller, wanted))


@router.get("/agents")
async def list_agents(caller: Reader, container: ServingRole, paging: Paging) -> Page[AgentView]:
    """The tenant's agents, newest first."""
    agents = await container.agents.newest(caller, paging.place, paging.fetch)
    return paging.page(agents, lambda agent: agent.id)


@router.get("/agents/{agent_id}")
async def get_agent(agent_id: AgentId, caller: Reader, container: ServingRole) -> AgentView:
    return await container.agents.get(caller, agent_id)


@router.put("/agents/{agent_id}")
async def change_agent(agent_id: AgentId, wanted: AgentDraft, caller: Writer, container: ServingRole) -> AgentView:
    """The whole agent anew. Turns that have begun go on under what they began with."""
    return await container.agents.change(caller, agent_id, wanted)


@router.delete("/agents/{agent_id}", status_code=204)
async def remove_agent(agent_id: AgentId, caller: Writer, container: ServingRole) -> None:
    """No turn begins with it any more; its sessions stay readable."""
    await container.agents.remove(caller, agent_id)
