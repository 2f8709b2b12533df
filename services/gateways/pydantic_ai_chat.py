"""Chat models of every provider that pydantic-ai speaks, through its direct interface."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from pydantic_ai import exceptions
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    SystemPromptPart,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    UserPromptPart,
)
from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers import Provider, infer_provider
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

from schemas.errors import Failure, PermanentFailure, TransientFailure
from services.gateways.chat_failures import REFUSED, UNAVAILABLE, chat_failure
from services.gateways.chat_model import ChatDelta, ChatEnd, FinishReason, Turn


class PydanticAIChat:
    """One model by its pydantic-ai name, say `openai-chat:gpt-5-mini`. Neither we nor the provider's SDK try again."""

    def __init__(self, name: str, model: Model, timeout_s: float) -> None:
        self.name = name
        self._model = model
        self._timeout_s = timeout_s

    async def stream(
        self, system: str, user: str, conversation: Sequence[Turn], max_tokens: int
    ) -> AsyncIterator[ChatDelta | ChatEnd]:
        settings = ModelSettings(
            max_tokens=max_tokens, max_retries=0, timeout=self._timeout_s, request_timeout=self._timeout_s
        )
        prompt = _prompt(system, user, conversation)
        try:
            async with model_request_stream(self._model, prompt, model_settings=settings) as replies:
                async for event in replies:
                    if (delta := _delta(event)) is not None:
                        yield delta
                end = self._end(replies.get())
        except Failure:
            raise
        except Exception as error:
            raise chat_failure(self.name, error) from error
        yield end

    def _end(self, reply: ModelResponse) -> ChatEnd:
        details = reply.provider_details or {}
        if reply.finish_reason == "content_filter":
            said = details.get("refusal") or "the provider's content filter stopped the reply"
            raise PermanentFailure(REFUSED, f"{self.name}: {said}")
        broken_off = isinstance(self._model, OpenAIChatModel) and "finish_reason" not in details
        if broken_off or reply.finish_reason == "error":
            raise TransientFailure(UNAVAILABLE, f"{self.name}: the reply broke off")
        if not (reply.text or "").strip() and reply.finish_reason != "length":
            raise TransientFailure(UNAVAILABLE, f"{self.name}: the reply was empty")
        finish: FinishReason = "length" if reply.finish_reason == "length" else "stop"
        return ChatEnd(reply.usage.input_tokens, reply.usage.output_tokens, finish)


def _prompt(system: str, user: str, conversation: Sequence[Turn]) -> list[ModelMessage]:
    parts: list[ModelRequestPart] = [SystemPromptPart(system)]
    prompt: list[ModelMessage] = []
    for turn in (*conversation, Turn("user", user)):
        if turn.role == "user":
            parts.append(UserPromptPart(turn.text))
            continue
        if parts:
            prompt.append(ModelRequest(parts))
            parts = []
        prompt.append(ModelResponse([TextPart(turn.text)]))
    return [*prompt, ModelRequest(parts)]


def _delta(event: ModelResponseStreamEvent) -> ChatDelta | None:
    match event:
        case PartStartEvent(part=TextPart(content=text)) if text:
            return ChatDelta(text=text)
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
            return ChatDelta(text=text)
        case PartStartEvent(part=ThinkingPart(content=text)) if text:
            return ChatDelta(thinking=text)
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text)) if text:
            return ChatDelta(thinking=text)
    return None


def build_pydantic_ai_chat(name: str, env: Mapping[str, str], timeout_s: float) -> PydanticAIChat:
    """ValueError, in one line for a person, when there is no such model or its provider lacks a key."""

    def provider(provider_name: str) -> Provider[Any]:
        if provider_name in {"openai", "openai-chat", "openai-responses"}:
            return OpenAIProvider(env.get("OPENAI_BASE_URL"), env.get("OPENAI_API_KEY"))
        if provider_name == "anthropic":
            return AnthropicProvider(api_key=env.get("ANTHROPIC_API_KEY"), base_url=env.get("ANTHROPIC_BASE_URL"))
        return infer_provider(provider_name)  # reads its own variables from the process

    try:
        return PydanticAIChat(name, infer_model(name, provider), timeout_s)
    except (exceptions.UserError, ValueError, ImportError) as error:
        raise ValueError(f"PERDURE_CHAT_MODEL is {name!r}: {' '.join(str(error).split())}") from error
