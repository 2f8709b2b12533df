"""A command on a pseudo-terminal that a test types into and reads."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.running.processes import wait_until
from tests.unit.cli.test_terminal import Terminal

ROOT = Path(__file__).parents[3]
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
WITHIN_S = 30.0


class TypingTerminal:
    """Of 100 columns. `screen` is all that was written, without escape codes."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (40, 100))
        self.process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT, env=dict(env))
        os.close(theirs)
        self._terminal = Terminal(self.process)
        self._terminal.read_from(self._ours)

    @property
    def raw(self) -> str:
        return b"".join(self._terminal.written).decode(errors="replace")

    @property
    def screen(self) -> str:
        return _ESCAPE.sub("", self.raw).replace("\r", "")

    def wait_for(self, text: str, count: int = 1) -> None:
        try:
            wait_until(lambda: self.screen.count(text) >= count, WITHIN_S)
        except TimeoutError:
            raise AssertionError(f"{text!r} did not appear:\n{self.screen[-3000:]}") from None

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def interrupt(self) -> None:
        """What a controlling terminal makes of Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def end(self) -> int:
        """The exit code of a command that ends by itself."""
        self._terminal.finish()
        return int(self.process.returncode)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
