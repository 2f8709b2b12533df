"""Files that runs left behind."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path
from starlette.responses import StreamingResponse

from schemas.conversations import ArtifactView
from services.api.authentication import KeyedRoute, Reader
from services.api.pagination import Page, Paging
from services.api.state import ServingRole

router = APIRouter(route_class=KeyedRoute, tags=["runs"])


@router.get("/runs/{run_id}/artifacts")
async def list_artifacts(
    run_id: Annotated[str, Path(max_length=200)], caller: Reader, container: ServingRole, paging: Paging
) -> Page[ArtifactView]:
    """What the run left, oldest first."""
    found = await container.artifacts.of_run(caller.actor, run_id, paging.after_text(), paging.fetch)
    return paging.page(found, lambda artifact: artifact.id)


@router.get(
    "/artifacts/{artifact_id}/content",
    response_class=StreamingResponse,
    responses={200: {"content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}},
)
async def artifact_content(
    artifact_id: Annotated[str, Path(max_length=200)], caller: Reader, container: ServingRole
) -> StreamingResponse:
    """The bytes. A browser is told to run nothing of them."""
    content = await container.artifacts.content(caller.actor, artifact_id)
    name = quote(content.name.rpartition("/")[2], safe="")
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
        "Content-Security-Policy": "sandbox; default-src 'none'",
    }
    return StreamingResponse(content.pieces, media_type=content.media_type, headers=headers)
