"""Chat models of every provider that pydantic-ai speaks, through its direct interface."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Literal

from pydantic_ai import exceptions
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    SystemPromptPart,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers import Provider, infer_provider
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from schemas.errors import Failure, PermanentFailure, TransientFailure
from services.gateways.chat_failures import REFUSED, UNAVAILABLE, chat_failure
from services.gateways.chat_model import ChatDelta, ChatEnd, FinishReason, ModelCall, ModelTool, ToolResult, Turn


class PydanticAIChat:
    """One model by its pydantic-ai name, say `openai-chat:gpt-5-mini`. Neither we nor the provider's SDK try again."""

    def __init__(self, name: str, model: Model, timeout_s: float) -> None:
        self.name = name
        self._model = model
        self._timeout_s = timeout_s

    async def stream(
        self,
        system: str,
        conversation: Sequence[Turn | ToolResult],
        max_tokens: int,
        tools: Sequence[ModelTool] = (),
    ) -> AsyncIterator[ChatDelta | ChatEnd]:
        settings = ModelSettings(
            max_tokens=max_tokens, max_retries=0, timeout=self._timeout_s, request_timeout=self._timeout_s
        )
        prompt, offered = _prompt(system, conversation), ModelRequestParameters(function_tools=_definitions(tools))
        try:
            async with model_request_stream(
                self._model, prompt, model_settings=settings, model_request_parameters=offered
            ) as replies:
                async for event in replies:
                    if (delta := _delta(event)) is not None:
                        yield delta
                end = self._end(replies.get(), may_be_empty=bool(tools))
        except Failure:
            raise
        except Exception as error:
            raise chat_failure(self.name, error) from error
        yield end

    def _end(self, reply: ModelResponse, *, may_be_empty: bool) -> ChatEnd:
        details = reply.provider_details or {}
        if reply.finish_reason == "content_filter":
            said = details.get("refusal") or "the provider's content filter stopped the reply"
            raise PermanentFailure(REFUSED, f"{self.name}: {said}")
        broken_off = isinstance(self._model, OpenAIChatModel) and "finish_reason" not in details
        if broken_off or reply.finish_reason == "error":
            raise TransientFailure(UNAVAILABLE, f"{self.name}: the reply broke off")
        calls = [
            ModelCall(part.tool_call_id, part.tool_name, _as_sent(part.args))
            for part in reply.parts
            if isinstance(part, ToolCallPart)
        ]
        empty = not (reply.text or "").strip() and not calls
        if empty and not may_be_empty and reply.finish_reason != "length":
            raise TransientFailure(UNAVAILABLE, f"{self.name}: the reply was empty")
        finish: FinishReason = "length" if reply.finish_reason == "length" else "stop"
        return ChatEnd(reply.usage.input_tokens, reply.usage.output_tokens, finish, tuple(calls), _cost(reply))


def _as_sent(arguments: Any) -> str:
    """What is no JSON stays as it is: whoever reads it says what is wrong with it."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)


def _cost(reply: ModelResponse) -> float | None:
    """By the price list that comes with genai-prices; null for models that it does not know."""
    try:
        return float(reply.cost().total_price)
    except (LookupError, ValueError):
        return None


def _definitions(tools: Sequence[ModelTool]) -> list[ToolDefinition]:
    return [
        ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=tool.parameters)
        for tool in tools
    ]


def _prompt(system: str, conversation: Sequence[Turn | ToolResult]) -> list[ModelMessage]:
    """Neighbouring parts of one side become one message, as providers want them."""
    parts: list[ModelRequestPart] = [SystemPromptPart(system)]
    prompt: list[ModelMessage] = []
    for turn in conversation:
        if isinstance(turn, ToolResult):
            outcome: Literal["success", "failed"] = "success" if turn.ok else "failed"
            parts.append(ToolReturnPart(turn.tool, turn.content, turn.call_id, outcome=outcome))
        elif turn.role == "user":
            parts.append(UserPromptPart(turn.text))
        else:
            if parts:
                prompt.append(ModelRequest(parts))
                parts = []
            prompt.append(ModelResponse(_said(turn)))
    return [*prompt, ModelRequest(parts)]


def _said(turn: Turn) -> list[ModelResponsePart]:
    text: list[ModelResponsePart] = [TextPart(turn.text)] if turn.text or not turn.calls else []
    return [*text, *(ToolCallPart(call.tool, call.arguments, call.call_id) for call in turn.calls)]


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
