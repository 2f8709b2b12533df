"""Parameters that mean something to OpenAI and nothing here: refused when leaving them out would change what comes back.

What only tunes a model (temperature, seed, token bounds, reasoning effort, verbosity) or its service is not read: agents
and answers have their own settings.
"""

from __future__ import annotations

from typing import Any

from schemas.openai_protocol import ChatRequest, OpenAIRequest, ResponseRequest
from services.api.openai_errors import Unsupported
from services.api.openai_models import Target

_NO_TOOLS = (
    "Agents call their own tools, on the server; tools of a client are not taken. Name tools in the agent instead."
)
_TEXT_ONLY = "Only text comes back: response formats are not supported."


def check_chat(asked: ChatRequest) -> None:
    _check_both(asked)
    if asked.n not in (None, 1):
        raise Unsupported("n", "One reply is given to a request: send n=1, or ask again.")
    if asked.functions:
        raise Unsupported("functions", _NO_TOOLS)
    if (asked.response_format or {}).get("type", "text") != "text":
        raise Unsupported("response_format", _TEXT_ONLY)
    if asked.audio is not None or set(asked.modalities or ["text"]) != {"text"}:
        raise Unsupported("modalities", "Only text comes back.")
    if asked.stop:
        raise Unsupported("stop", "Stop sequences are not supported.")
    if asked.logprobs:
        raise Unsupported("logprobs", "Log probabilities are not given.")
    if asked.web_search_options is not None:
        raise Unsupported("web_search_options", "Only the team's documents are searched, never the web.")


def check_response(asked: ResponseRequest) -> None:
    _check_both(asked)
    if _text_format(asked.text) != "text":
        raise Unsupported("text.format", _TEXT_ONLY)
    if asked.conversation is not None:
        raise Unsupported("conversation", "Conversations are not kept by this name: use previous_response_id.")
    if asked.prompt is not None:
        raise Unsupported(
            "prompt", "Stored prompts are not supported: an agent's instructions are stored with the agent."
        )
    if asked.max_tool_calls is not None:
        raise Unsupported("max_tool_calls", "How much an agent may do is set in the agent's limits.")


def check_target(asked: OpenAIRequest, target: Target) -> None:
    """An agent is kept to the spaces that it names."""
    if target.agent_id is None:
        return
    for name in ("space", "spaces", "filters"):
        if getattr(asked, name) is not None:
            raise Unsupported(name, "An agent looks where its own configuration says; this is for perdure/answers.")


def _check_both(asked: OpenAIRequest) -> None:
    if asked.tools:
        raise Unsupported("tools", _NO_TOOLS)
    if asked.tool_choice not in (None, "none", "auto"):
        raise Unsupported("tool_choice", _NO_TOOLS)
    if asked.top_logprobs:
        raise Unsupported("top_logprobs", "Log probabilities are not given.")


def _text_format(text: dict[str, Any] | None) -> Any:
    found = (text or {}).get("format") or {}
    return found.get("type", "text") if isinstance(found, dict) else found
