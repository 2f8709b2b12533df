"""Starts `perdure` in a process forked from one that has imported it: a process of its own in every other respect.

A test that starts Perdure ten times would otherwise spend a third of each start on the same imports. That the command starts from
nothing is for tests/acceptance and tests/durability/test_up.py to show.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext

PRELOADED = ["infra.main", "infra.up", "services.gateways.pydantic_ai_chat"]


class WarmProcess:
    """What tests use of a `subprocess.Popen`. `stdout` is a pipe of text; what goes to stderr is appended to `log`."""

    def __init__(self, arguments: Sequence[str], env: Mapping[str, str], log: str) -> None:
        context = _context()
        ours, theirs = context.Pipe(duplex=False)
        self._process = context.Process(target=_run, args=(list(arguments), dict(env), log, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self.stdout = os.fdopen(os.dup(ours.fileno()), encoding="utf-8")
        ours.close()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired("perdure", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


@cache
def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


def _run(arguments: list[str], env: dict[str, str], log: str, stdout: Connection) -> None:
    os.dup2(stdout.fileno(), 1)
    stdout.close()
    errors = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(errors, 2)
    os.close(errors)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["perdure", *arguments]
    import_module("infra.main").main()
