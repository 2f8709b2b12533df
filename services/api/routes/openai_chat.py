"""OpenAI-compatible models and chat completions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import JSONResponse, Response

from schemas.openai_protocol import ChatCompletion, ChatRequest, ModelCard, ModelList
from services.api import openai_following, openai_models, openai_parameters
from services.api.authentication import Reader
from services.api.event_stream import MEDIA_TYPE
from services.api.idempotency import OnceKey
from services.api.openai_chat_chunks import ChatTelling
from services.api.openai_conversation import read_chat
from services.api.openai_errors import ERROR_REPLIES, OpenAIRoute
from services.api.openai_outcome import settled
from services.api.openai_starting import Starting
from services.api.state import ServingRole

router = APIRouter(route_class=OpenAIRoute, tags=["openai"], responses=ERROR_REPLIES)


@router.get("/models")
async def list_models(caller: Reader, container: ServingRole) -> ModelList:
    """What this key can ask: the answers, and the tenant's agents when it may write."""
    return ModelList(data=await openai_models.cards(container, caller))


@router.get("/models/{model:path}")
async def get_model(model: Annotated[str, Path(max_length=200)], caller: Reader, container: ServingRole) -> ModelCard:
    return await openai_models.card(container, caller, model)


@router.post(
    "/chat/completions",
    response_model=ChatCompletion,
    responses={200: {"description": "The reply; with `stream` its chunks", "content": {MEDIA_TYPE: {}}}},
)
async def chat_completions(
    wanted: ChatRequest, request: Request, caller: Reader, container: ServingRole, once: OnceKey
) -> Response:
    """`perdure/answers` answers the last message from the documents; `perdure/agent/<name>` gives it to that agent."""
    openai_parameters.check_chat(wanted)
    conversation = read_chat(wanted.messages)
    target = await openai_models.resolve(container, caller, wanted.model)
    openai_parameters.check_target(wanted, target)
    attended = await Starting(request, container, caller, once).start(wanted, target, conversation)
    usage_wanted = bool(wanted.stream_options and wanted.stream_options.include_usage)
    telling = ChatTelling(attended.run_id, target.model, openai_following.now(), include_usage=usage_wanted)
    if wanted.stream:
        return openai_following.streamed(attended, telling)
    for event in settled(await openai_following.whole(attended, request)):
        telling.apply(event)
    return JSONResponse(telling.completion().model_dump(mode="json"), headers={"X-Run-Id": attended.run_id})
