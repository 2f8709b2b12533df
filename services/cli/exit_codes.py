"""How a command ends, for scripts (docs/reference/exit-codes.md)."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """78 (bad settings) belongs to the processes; the commands here read no settings."""

    OK = 0
    REFUSED = 1  # the server said no, and why is on stderr
    USAGE = 2  # the command line is wrong; nothing was sent
    SOME_FAILED = 3  # it was done, and a document, run or check of it ended badly
    UNREACHABLE = 4
    INTERRUPTED = 130  # Ctrl-C; what the server has accepted goes on
