"""Where a turn is shown, as `chat_view` knows it."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from rich.console import RenderableType
from rich.text import Text


@dataclass(frozen=True)
class Fresh:
    """What may still change: the thinking and the text since the last call, and what the turn does now."""

    thinking: str = ""
    text: str = ""
    status: str = "queued"


class Screen(Protocol):
    """`writes_text`: text is on it as it comes, to the last word. `keeps_text`: what was settled is on it."""

    writes_text: bool
    keeps_text: bool

    def __enter__(self) -> Screen: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def draw(self, fresh: Fresh) -> None: ...
    def settle(self, fresh: Fresh) -> None:
        """What was drawn stays as it is now."""
        ...

    def call(self, line: Text) -> None:
        """One call and what it came to."""
        ...

    def block(self, heading: Text, body: RenderableType) -> None:
        """A request for approval."""
        ...

    def remark(self, text: str) -> None: ...
    def ask(self, question: str | None) -> None:
        """What the next line typed answers."""
        ...

    def typed(self, line: str) -> None:
        """What is typed so far and not sent."""
        ...
