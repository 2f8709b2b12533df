"""Health, diagnostics and metrics."""

from __future__ import annotations

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import JSONResponse, Response

from schemas.api_replies import Health
from schemas.errors import EngineDown, Unauthenticated
from schemas.identity import HealthPart
from services.api.authentication import Admin, KeyedRoute, caller_of
from services.api.metrics import exposition
from services.api.pagination import Page
from services.api.state import StreamRole, api_state
from services.diagnostics import diagnose, is_ready

open_router = APIRouter(tags=["operations"])
router = APIRouter(route_class=KeyedRoute, tags=["operations"])


@open_router.get("/health/live")
async def live() -> Health:
    """This process runs; needs no key."""
    return Health(status="live")


@open_router.get(
    "/health/ready",
    response_model=Health,
    responses={503: {"description": "An engine that is needed does not answer", "model": Health}},
)
async def ready(request: Request) -> Response:
    """200 or 503; with a key also which part is missing."""
    parts = await api_state(request).readiness.parts()
    ok = is_ready(parts)
    body: dict[str, object] = {"status": "ready" if ok else "unready"}
    if await _has_key(request):
        body["parts"] = [part.model_dump() for part in parts]
    return JSONResponse(body, 200 if ok else 503, {"Cache-Control": "no-store"})


async def _has_key(request: Request) -> bool:
    """False without a key that counts; while Postgres is away no key can be checked, and health must be told all the same."""
    if "authorization" not in request.headers:
        return False
    try:
        await caller_of(request)
    except (Unauthenticated, EngineDown):
        return False
    return True


@router.get("/diagnostics")
async def diagnostics(caller: Admin, container: StreamRole) -> Page[HealthPart]:
    """One check per engine: how it is and what to do about it."""
    return Page(items=await diagnose(container))


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(caller: Admin, container: StreamRole) -> Response:
    """In Prometheus' text format."""
    return Response(await exposition(container), media_type=CONTENT_TYPE_LATEST)
