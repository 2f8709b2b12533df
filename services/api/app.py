"""The FastAPI application of one role: the whole API, or only what needs no index."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import APIRouter, FastAPI
from starlette.routing import Route

from services.api import openapi, problems, reference_page
from services.api.body_bounds import BodyBounds
from services.api.mcp.endpoint import McpEndpoint
from services.api.request_scope import RequestScope
from services.api.routes import (
    agents,
    approvals,
    artifacts,
    decision_pages,
    document_changes,
    documents,
    health,
    identity,
    memories,
    openai_chat,
    openai_responses,
    runs,
    search,
    sessions,
    spaces,
    usage,
)
from services.api.state import ApiState
from services.api.token_bucket import TokenBuckets
from services.container import Serving, Stream
from services.diagnostics import Readiness

PREFIX = "/v1"


def create_app(container: Stream) -> FastAPI:
    """Routes by role. The container's hub begins with the application and ends with it; call `hub.stop()` earlier to
    end open streams before a server waits for its connections."""

    mcp = McpEndpoint(container) if isinstance(container, Serving) else None

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await container.hub.start()
        try:
            yield
        finally:
            await container.hub.stop()
            if mcp is not None:
                await mcp.stop()

    app = FastAPI(
        title="Perdure",
        version=version("perdure"),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    limits = container.settings.limits
    app.state.perdure = ApiState(
        container,
        requests_per_key=TokenBuckets(limits.requests_per_minute),
        failures_per_address=TokenBuckets(limits.wrong_keys_per_minute),
        readiness=Readiness(container.probes),
    )
    _mount(app, container)
    if mcp is not None:
        app.router.routes.append(Route(mcp.path, mcp))
    problems.install(app)
    openapi.install(app)
    app.add_middleware(BodyBounds, limits=limits)
    app.add_middleware(RequestScope)
    return app


def _mount(app: FastAPI, container: Stream) -> None:
    """Health and metrics also answer without the prefix, where probes and scrapers look for them."""
    routers: list[APIRouter] = [
        identity.router,
        spaces.router,
        runs.router,
        usage.router,
        health.router,
        health.open_router,
    ]
    if isinstance(container, Serving):
        routers += [spaces.removal_router, documents.router, document_changes.router, search.router]
        routers += [
            agents.router,
            sessions.router,
            approvals.router,
            artifacts.router,
            memories.router,
            openai_chat.router,
            openai_responses.router,
        ]
    for router in routers:
        app.include_router(router, prefix=PREFIX)
    app.include_router(health.open_router, include_in_schema=False)
    app.include_router(health.router, include_in_schema=False)
    app.include_router(reference_page.router, include_in_schema=False)
    if isinstance(container, Serving):
        app.include_router(decision_pages.router, include_in_schema=False)
