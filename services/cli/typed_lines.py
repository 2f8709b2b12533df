"""Lines that a person types or a pipe holds, read without stopping what goes on meanwhile."""

from __future__ import annotations

import codecs
import os
import readline
import select
import sys
import termios
import time
import tty
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from services.cli import output

_READ_BYTES = 4_096
QUIT = "/quit"
LATER = "/later"


class TypedLines(Protocol):
    """`partial` is what is typed and not sent."""

    @property
    def partial(self) -> str: ...

    def next(self, prompt: str) -> str | None:
        """Waits for a line; None when there are no more."""
        ...

    def while_running(self) -> AbstractContextManager[None]:
        """A context in which `poll` is called."""
        ...

    def poll(self, within_s: float, *, is_asked: bool) -> list[str]:
        """Lines that have come; waits at most `within_s` for one. `is_asked`: a question waits for an answer."""
        ...


class LineEditor:
    """Keys become lines. What a terminal sends for arrows and the like is left out."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="ignore")
        self._escape = ""
        self.partial = ""

    def feed(self, keys: bytes) -> list[str]:
        lines: list[str] = []
        for key in self._decoder.decode(keys):
            if self._escape:
                self._swallow(key)
            elif key in "\r\n":
                lines.append(self.partial)
                self.partial = ""
            elif key == "\x1b":
                self._escape = key
            elif key == "\x04" and not self.partial:  # Ctrl-D
                lines.append(QUIT)
            else:
                self._edit(key)
        return lines

    def _edit(self, key: str) -> None:
        if key in "\x7f\b":
            self.partial = self.partial[:-1]
        elif key == "\x15":  # Ctrl-U
            self.partial = ""
        elif key == "\x17":  # Ctrl-W
            self.partial = self.partial.rstrip().rpartition(" ")[0]
        elif key.isprintable():
            self.partial += key

    def _swallow(self, key: str) -> None:
        """`ESC x`, or `ESC [` and `ESC O` up to a final byte (ECMA-48)."""
        self._escape += key
        if self._escape not in ("\x1b[", "\x1bO") and "@" <= key <= "~":
            self._escape = ""


class KeyedLines:
    """A terminal that can redraw: readline between turns, and during one keys that its screen shows."""

    def __init__(self) -> None:
        self._editor = LineEditor()
        self._ready: deque[str] = deque()
        self._descriptor = sys.stdin.fileno()

    @property
    def partial(self) -> str:
        return self._editor.partial

    def next(self, prompt: str) -> str | None:
        if self._ready:
            return self._ready.popleft()
        typed, self._editor.partial = self._editor.partial, ""
        readline.set_startup_hook(lambda: readline.insert_text(typed))
        try:
            return input(prompt)
        except (EOFError, KeyboardInterrupt) as left:
            sys.stdout.write("\n")  # the prompt's line is not ended by these keys
            if isinstance(left, KeyboardInterrupt):
                raise
            return None
        finally:
            readline.set_startup_hook()

    @contextmanager
    def while_running(self) -> Iterator[None]:
        before = termios.tcgetattr(self._descriptor)
        tty.setcbreak(self._descriptor, termios.TCSANOW)
        try:
            yield
        finally:
            termios.tcsetattr(self._descriptor, termios.TCSANOW, before)

    def poll(self, within_s: float, *, is_asked: bool) -> list[str]:
        if _is_readable(self._descriptor, within_s):
            self._ready += self._editor.feed(os.read(self._descriptor, _READ_BYTES))
        lines = list(self._ready)
        self._ready.clear()
        return lines


class PlainLines:
    """A terminal that shows by itself what is typed, or a pipe: there a line is taken when one is wanted, and not before."""

    partial = ""

    def __init__(self) -> None:
        self._descriptor = sys.stdin.fileno()
        self._is_terminal = sys.stdin.isatty()
        self._bytes = b""
        self._is_over = False

    def next(self, prompt: str) -> str | None:
        if self._is_terminal:
            stream = sys.stdout if sys.stdout.isatty() else sys.stderr
            stream.write(prompt)
            stream.flush()
        while not self._is_over and b"\n" not in self._bytes:
            self._read()
        return self._line()

    @contextmanager
    def while_running(self) -> Iterator[None]:
        yield

    def poll(self, within_s: float, *, is_asked: bool) -> list[str]:
        if not (self._is_terminal or is_asked):
            time.sleep(within_s)
            return []
        if b"\n" not in self._bytes and not self._is_over and _is_readable(self._descriptor, within_s):
            self._read()
        if b"\n" in self._bytes:
            return [self._line() or ""]
        if self._is_over:  # nobody can answer any more; a terminal's user has left
            return [QUIT if self._is_terminal else LATER]
        return []

    def _read(self) -> None:
        read = os.read(self._descriptor, _READ_BYTES)
        self._bytes += read
        self._is_over = not read

    def _line(self) -> str | None:
        line, end, rest = self._bytes.partition(b"\n")
        self._bytes = rest
        return line.decode("utf-8", errors="replace") if line or end else None


def typed_lines() -> TypedLines:
    if sys.stdin.isatty() and not output.is_plain(sys.stdout):
        return KeyedLines()
    return PlainLines()


def _is_readable(descriptor: int, within_s: float) -> bool:
    return bool(select.select([descriptor], [], [], within_s)[0])
