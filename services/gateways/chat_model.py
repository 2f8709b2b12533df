"""The port to a model that writes text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True)
class Turn:
    """What was said before in the conversation."""

    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True)
class ChatDelta:
    """A piece of the reply, or of the model's thinking before it."""

    text: str = ""
    thinking: str = ""


@dataclass(frozen=True)
class ChatEnd:
    """The last item of every stream that did not fail. `length`: the reply was cut at `max_tokens`."""

    input_tokens: int
    output_tokens: int
    finish_reason: FinishReason


class ChatModel(Protocol):
    """Streams one reply; tries nothing twice."""

    @property
    def name(self) -> str: ...

    def stream(
        self, system: str, user: str, conversation: Sequence[Turn], max_tokens: int
    ) -> AsyncIterator[ChatDelta | ChatEnd]:
        """Deltas, then one ChatEnd. Closing the iterator closes the connection.

        Raises PermanentFailure (`model_rejected`, `context_length`, `refused`), TransientFailure
        (`model_unavailable`, also when the stream breaks off) or EngineDown.
        """
        ...
