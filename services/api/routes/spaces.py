"""Spaces and their grants. `{space}` is an id or a name."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from schemas.api_replies import RunAccepted
from schemas.identity import GrantDraft, GrantView, SpaceDraft, SpaceView
from services.api.authentication import Anyone, KeyedRoute, Writer
from services.api.idempotency import OnceKey
from services.api.pagination import Page, Paging
from services.api.state import ServingRole, StreamRole

router = APIRouter(route_class=KeyedRoute, tags=["spaces"])
removal_router = APIRouter(route_class=KeyedRoute, tags=["spaces"])


@router.post("/spaces", status_code=201, response_model=SpaceView)
async def create_space(draft: SpaceDraft, caller: Anyone, container: StreamRole, once: OnceKey) -> SpaceView | Response:
    """Whoever makes a space is its first manager."""
    caller.require("write", "admin")
    return await once(draft, lambda: container.identity.spaces.create(caller, draft))


@router.get("/spaces")
async def list_spaces(caller: Anyone, container: StreamRole, paging: Paging) -> Page[SpaceView]:
    """Spaces with a grant for this key's user; with the scope `admin`, all spaces of the tenant."""
    caller.require("read", "admin")
    spaces = await container.identity.spaces.page(caller, paging.after_text(), paging.fetch)
    return paging.page(spaces, lambda space: space.id)


@router.get("/spaces/{space}")
async def get_space(space: str, caller: Anyone, container: StreamRole) -> SpaceView:
    caller.require("read", "admin")
    return await container.identity.spaces.get(caller, space)


@removal_router.delete("/spaces/{space}", status_code=202)
async def remove_space(space: str, caller: Writer, container: ServingRole) -> RunAccepted:
    """Hidden at once; its documents are removed by the run."""
    return RunAccepted(run_id=await container.reception.remove_space(caller.actor, space))


@router.get("/spaces/{space}/grants")
async def list_grants(space: str, caller: Anyone, container: StreamRole, paging: Paging) -> Page[GrantView]:
    caller.require("read", "admin")
    grants = await container.identity.spaces.grants(caller, space, paging.after_text(), paging.fetch)
    return paging.page(grants, lambda grant: grant.principal)


@router.put("/spaces/{space}/grants/{principal}", status_code=204)
async def give_grant(space: str, principal: str, draft: GrantDraft, caller: Anyone, container: StreamRole) -> None:
    """`principal` is `user:<id>`, `group:<id>` or `tenant`."""
    caller.require("write", "admin")
    await container.identity.spaces.give(caller, space, principal, draft)


@router.delete("/spaces/{space}/grants/{principal}", status_code=204)
async def take_grant(space: str, principal: str, caller: Anyone, container: StreamRole) -> None:
    caller.require("write", "admin")
    await container.identity.spaces.take(caller, space, principal)
