"""A turn on a terminal that can redraw: what stays scrolls away above, what may still change is drawn anew below it."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.text import Text

from services.cli import output
from services.cli.chat_screen import Fresh

_ROWS_KEPT_FREE = 8
_CALL, _TEXT, _BLOCK, _REMARK = "call", "text", "block", "remark"


class LiveScreen:
    """Below what stays: the end of the text, what the turn does, and the line that is being typed."""

    writes_text = False
    keeps_text = True

    def __init__(self, console: Console, *, takes_lines: bool) -> None:
        self._picture = _Picture(takes_lines)
        self._live = Live(self._picture, console=console, refresh_per_second=12, transient=True)
        self._last = ""

    def __enter__(self) -> LiveScreen:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:  # what was read so far is not taken away
            self.settle(self._picture.fresh)
        self._live.__exit__(kind, error, trace)
        if self._last not in ("", _TEXT):  # what is printed next is text
            self._live.console.print()

    def draw(self, fresh: Fresh) -> None:
        self._picture.fresh = fresh

    def settle(self, fresh: Fresh) -> None:
        self._picture.fresh = Fresh(status=fresh.status)
        for text, style in ((fresh.thinking, "dim italic"), (fresh.text, "")):
            if text.strip():
                self._put(Text(output.clean(text).strip(), style=style), _TEXT)

    def call(self, line: Text) -> None:
        self._put(line, _CALL)

    def block(self, heading: Text, body: RenderableType) -> None:
        self._put(Group(heading, _Barred(body)), _BLOCK)

    def remark(self, text: str) -> None:
        self._put(Text(output.one_line(text), style="dim"), _REMARK if self._last == _BLOCK else self._last)

    def ask(self, question: str | None) -> None:
        self._picture.question = question

    def typed(self, line: str) -> None:
        self._picture.line = line

    def _put(self, shown: RenderableType, kind: str) -> None:
        """A blank line between what is said and what is done."""
        if self._last and kind != self._last:
            self._live.console.print()
        self._last = kind
        self._picture.has_calls_above = kind != _TEXT
        self._live.console.print(shown)


class _Barred:
    """A body with a bar at its left, so that where it ends is seen."""

    def __init__(self, body: RenderableType) -> None:
        self._body = body

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in console.render_lines(self._body, options.update_width(max(10, options.max_width - 2)), pad=False):
            yield Text("│ ", style="yellow", end="")
            yield from line
            yield Text()


class _Picture:
    def __init__(self, takes_lines: bool, now: Callable[[], float] = time.monotonic) -> None:
        self.fresh = Fresh()
        self.has_calls_above = False
        self.question: str | None = None
        self.line = ""
        self._takes_lines = takes_lines
        self._now = now
        self._began = now()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows: list[Text] = []
        for text, style in ((self.fresh.thinking, "dim italic"), (self.fresh.text, "")):
            if text.strip():
                rows += Text(output.clean(text).strip(), style=style).wrap(console, options.max_width)
        if rows and self.has_calls_above:
            yield Text()
        yield from rows[-max(1, console.height - _ROWS_KEPT_FREE) :]
        yield Text()
        yield self._status()
        if self.question:
            yield Text(self.question, style="bold yellow")
        if self._takes_lines:
            yield Text.assemble("> ", output.one_line(self.line), (" ", "reverse"))

    def _status(self) -> Text:
        seconds = int(self._now() - self._began)
        hint = "  (/stop, /steer TEXT, /help)" if self._takes_lines and not self.question else ""
        return Text(f"… {output.one_line(self.fresh.status)} {seconds} s{hint}", style="dim")
