"""Search and answers."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Request
from starlette.responses import JSONResponse, Response

from schemas.answers import AnswerRequest, AnswerStarted, AnswerView
from schemas.search import SearchRequest, SearchResult
from services.api.authentication import PromptRoute, Reader
from services.api.event_stream import MEDIA_TYPE, EventStreamResponse, RunEventStream
from services.api.idempotency import OnceKey
from services.api.state import ServingRole, api_state

router = APIRouter(route_class=PromptRoute)


@router.post("/search", tags=["search"])
async def search(wanted: SearchRequest, caller: Reader, container: ServingRole) -> SearchResult:
    """Passages that this key may read now, best first."""
    return await container.search.search(caller.actor, wanted)


@router.post(
    "/answers",
    status_code=202,
    tags=["answers"],
    response_model=AnswerStarted,
    responses={200: {"description": "With `Accept: text/event-stream`: the run's events", "content": {MEDIA_TYPE: {}}}},
)
async def ask(
    wanted: AnswerRequest,
    request: Request,
    caller: Reader,
    container: ServingRole,
    once: OnceKey,
    accept: Annotated[str, Header()] = "*/*",
) -> AnswerStarted | Response:
    """Starts an answer. The reply names its run, or with `Accept: text/event-stream` is the run's stream itself."""
    started = await once(wanted, lambda: container.asking.start(caller.actor, wanted))
    if MEDIA_TYPE not in accept.lower():
        return started
    known = _started(started)
    headers = {
        "X-Run-Id": known.run_id,
        "X-Answer-Id": known.answer_id,
        "Location": f"/v1/answers/{known.answer_id}",
    }
    stream = RunEventStream(container.database, container.hub, caller, known.run_id, after=0)
    return EventStreamResponse(await stream.open(), api_state(request), caller.key_id, headers)


@router.get("/answers/{answer_id}", tags=["answers"])
async def get_answer(answer_id: str, caller: Reader, container: ServingRole) -> AnswerView:
    """The answer as far as it is. Without its text and `withheld: true` when a source may not be read by this key now."""
    return await container.asking.view(caller.actor, answer_id)


def _started(reply: AnswerStarted | Response) -> AnswerStarted:
    """A replayed reply holds the same ids."""
    if isinstance(reply, JSONResponse):
        return AnswerStarted.model_validate_json(bytes(reply.body))
    assert isinstance(reply, AnswerStarted)
    return reply
