"""The port to a model that writes text and may ask for tools."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True)
class ModelCall:
    """A call of a tool as the model asked for it; `arguments` is JSON text, or what was meant as such."""

    call_id: str
    tool: str
    arguments: str


@dataclass(frozen=True)
class Turn:
    """What was said in the conversation; an assistant's turn may hold calls."""

    role: Literal["user", "assistant"]
    text: str
    calls: Sequence[ModelCall] = ()


@dataclass(frozen=True)
class ToolResult:
    """What a call of the assistant's turn before it came to."""

    call_id: str
    tool: str
    content: str
    ok: bool = True


@dataclass(frozen=True)
class ModelTool:
    """A tool that the model may ask for; `parameters` is a JSON schema."""

    name: str
    description: str
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ChatDelta:
    """A piece of the reply, or of the model's thinking before it."""

    text: str = ""
    thinking: str = ""


@dataclass(frozen=True)
class ChatEnd:
    """The last item of every stream that did not fail. `length`: the reply was cut at `max_tokens`. `cost` is in US dollars,
    null when the model's price is not known."""

    input_tokens: int
    output_tokens: int
    finish_reason: FinishReason
    calls: Sequence[ModelCall] = ()
    cost: float | None = None


class ChatModel(Protocol):
    """Streams one reply; tries nothing twice."""

    @property
    def name(self) -> str: ...

    def stream(
        self,
        system: str,
        conversation: Sequence[Turn | ToolResult],
        max_tokens: int,
        tools: Sequence[ModelTool] = (),
    ) -> AsyncIterator[ChatDelta | ChatEnd]:
        """Deltas, then one ChatEnd. `conversation` ends with what is replied to. Closing the iterator closes the connection.

        Raises PermanentFailure (`model_rejected`, `context_length`, `refused`), TransientFailure
        (`model_unavailable`, also when the stream breaks off, or a reply without tools is empty) or EngineDown.
        """
        ...
