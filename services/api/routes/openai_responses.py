"""OpenAI-compatible responses. A response is a run: it can be read again, and followed by another."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import JSONResponse, Response

from schemas.errors import Problem
from schemas.openai_protocol import ResponseObject, ResponseRequest
from services.access.authenticate import Caller
from services.api import openai_following, openai_models, openai_parameters
from services.api.authentication import Reader
from services.api.event_stream import MEDIA_TYPE
from services.api.idempotency import OnceKey
from services.api.openai_conversation import read_input
from services.api.openai_errors import ERROR_REPLIES, OpenAIRoute, Unsupported
from services.api.openai_outcome import settled
from services.api.openai_response_events import ResponseTelling, read_again
from services.api.openai_starting import Starting, run_of_response
from services.api.state import ServingRole
from services.container import Serving
from services.events import run_cancelling
from services.stores import run_views

router = APIRouter(route_class=OpenAIRoute, tags=["openai"], responses=ERROR_REPLIES)
ResponseId = Annotated[str, Path(max_length=200)]


@router.post(
    "/responses",
    response_model=ResponseObject,
    responses={200: {"description": "The response; with `stream` its events", "content": {MEDIA_TYPE: {}}}},
)
async def create_response(
    wanted: ResponseRequest, request: Request, caller: Reader, container: ServingRole, once: OnceKey
) -> Response:
    """`perdure/answers` answers the last message from the documents; `perdure/agent/<name>` gives it to that agent."""
    openai_parameters.check_response(wanted)
    conversation = read_input(wanted.input, wanted.instructions)
    target = await openai_models.resolve(container, caller, wanted.model)
    openai_parameters.check_target(wanted, target)
    attended = await Starting(request, container, caller, once).start(wanted, target, conversation)
    telling = ResponseTelling(attended.run_id, target.model, openai_following.now(), wanted)
    if wanted.stream:
        return openai_following.streamed(attended, telling)
    if not wanted.background:
        for event in settled(await openai_following.whole(attended, request)):
            telling.apply(event)
    return JSONResponse(telling.snapshot().model_dump(mode="json"), headers={"X-Run-Id": attended.run_id})


@router.get("/responses/{response_id}")
async def get_response(
    response_id: ResponseId,
    caller: Reader,
    container: ServingRole,
    stream: Annotated[bool, Query(description="Not supported here")] = False,
) -> ResponseObject:
    """The response as far as it is. Without its output and `withheld: true` when this key may not read a source now."""
    if stream:
        raise Unsupported(
            "stream", "A response is streamed when it is made; GET /v1/runs/{run_id}/events follows its run."
        )
    return await _read(container, caller, run_of_response(response_id))


@router.post("/responses/{response_id}/cancel")
async def cancel_response(response_id: ResponseId, caller: Reader, container: ServingRole) -> ResponseObject:
    """Asks the run to stop; one that has ended stays as it is."""
    run_id = run_of_response(response_id)
    if await openai_models.model_of(container, caller, run_id) != openai_models.ANSWERS:
        caller.require("write")
    async with container.database.begin(caller.actor.tenant) as transaction:
        await run_cancelling.cancel(transaction, run_id, caller.actor.user)
    return await _read(container, caller, run_id)


async def _read(container: Serving, caller: Caller, run_id: str) -> ResponseObject:
    model = await openai_models.model_of(container, caller, run_id)
    async with container.database.begin(caller.actor.tenant) as transaction:
        run = await run_views.get(transaction, caller.actor, run_id)
    if run is None:
        raise Problem("There is no response with this id that this key can see.", type="not_found", status=404)
    events = await openai_following.stored(container, caller, run_id)
    created = run.started_at or (events[0].at if events else None)
    telling = ResponseTelling(run_id, model, int(created.timestamp()) if created else openai_following.now())
    return read_again(telling, settled(events))
