"""Requests for approval, and decisions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from schemas.approvals import ApprovalState, ApprovalView, Decided, Decision, DecisionLink
from services.api.authentication import KeyedRoute, Reader, Writer
from services.api.idempotency import OnceKey
from services.api.pagination import Page, Paging
from services.api.routes import decision_pages
from services.api.state import ServingRole

router = APIRouter(route_class=KeyedRoute, tags=["approvals"])
ApprovalId = Annotated[str, Path(max_length=200)]


@router.get("/approvals")
async def list_approvals(
    caller: Reader, container: ServingRole, paging: Paging, state: ApprovalState | None = None
) -> Page[ApprovalView]:
    """Requests that this key's user may decide, newest first."""
    approvals = await container.approvals.newest(caller.actor, state, paging.place, paging.fetch)
    return paging.page(approvals, lambda approval: approval.id)


@router.get("/approvals/{approval_id}")
async def get_approval(approval_id: ApprovalId, caller: Reader, container: ServingRole) -> ApprovalView:
    return await container.approvals.get(caller.actor, approval_id)


@router.post("/approvals/{approval_id}/decision", response_model=Decided)
async def decide(
    approval_id: ApprovalId, wanted: Decision, caller: Writer, container: ServingRole, once: OnceKey
) -> Decided | Response:
    """Decides once. The same decision again gives the same reply; another one, or one too late, 409 with what stands."""
    return await once(wanted, lambda: container.approvals.decide(caller.actor, approval_id, wanted))


@router.post("/approvals/{approval_id}/links", status_code=201)
async def make_link(approval_id: ApprovalId, request: Request, caller: Writer, container: ServingRole) -> DecisionLink:
    """A signed link to a page that decides this request as this key's user. Opening it changes nothing."""
    issued = await container.decision_links.issue(caller.actor, approval_id)
    base = container.settings.public_url or str(request.base_url)
    return DecisionLink(url=f"{base.rstrip('/')}{decision_pages.PREFIX}/{issued.token}", expires_at=issued.expires_at)
