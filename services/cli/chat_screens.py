"""Where a turn is shown: a terminal that can redraw, one that cannot, and what is no terminal."""

from __future__ import annotations

import sys

from rich.console import Group, RenderableType
from rich.text import Text

from services.cli import output
from services.cli.chat_screen import Fresh, Screen
from services.cli.live_screen import LiveScreen


class PlainScreen:
    """A terminal without colour or movement: text as it comes; what was taken back is said, and begins again."""

    writes_text = True
    keeps_text = True

    def __init__(self) -> None:
        self._shown = ""

    def __enter__(self) -> PlainScreen:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def draw(self, fresh: Fresh) -> None:
        text = output.clean(fresh.text).lstrip()
        if text.split() == self._shown.split():
            return
        if not text.startswith(self._shown):
            sys.stdout.write("\n(the text begins again)\n")
            self._shown = ""
        sys.stdout.write(text[len(self._shown) :])
        sys.stdout.flush()
        self._shown = text

    def settle(self, fresh: Fresh) -> None:
        self.draw(fresh)
        if self._shown:
            sys.stdout.write("\n")
        self._shown = ""

    def call(self, line: Text) -> None:
        self._print(line)

    def block(self, heading: Text, body: RenderableType) -> None:
        self._print(Group(heading, body))

    def remark(self, text: str) -> None:
        self._print(Text(f"({output.one_line(text)})"))

    def ask(self, question: str | None) -> None:
        if question:
            self._print(Text(question))

    def typed(self, line: str) -> None:
        """The terminal shows it itself."""

    def _print(self, shown: RenderableType) -> None:
        if self._shown:
            sys.stdout.write("\n")
        output.out().print(shown)


class QuietScreen:
    """No terminal: nothing but what somebody has to know, on stderr."""

    writes_text = False
    keeps_text = False

    def __enter__(self) -> QuietScreen:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def draw(self, fresh: Fresh) -> None:
        """What may change is not written where it cannot be taken back."""

    def settle(self, fresh: Fresh) -> None:
        """The finished answer holds it."""

    def call(self, line: Text) -> None:
        """The run's events hold it (`perdure runs watch`)."""

    def block(self, heading: Text, body: RenderableType) -> None:
        for part in (heading, body):
            output.err().print(part)

    def remark(self, text: str) -> None:
        output.say(text)

    def ask(self, question: str | None) -> None:
        if question:
            output.say(question)

    def typed(self, line: str) -> None:
        """Lines come from a pipe."""


def screen_for(*, as_json: bool, takes_lines: bool) -> Screen:
    if not as_json and not output.is_plain(sys.stdout):
        return LiveScreen(output.out(), takes_lines=takes_lines)
    if not as_json and sys.stdout.isatty():
        return PlainScreen()
    return QuietScreen()
