"""One child of a pool, seen from the parent."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from typing import IO, Self

from pydantic import BaseModel

from schemas.errors import Failure, PermanentFailure, TransientFailure
from schemas.settings import ParsingSettings
from services.documents.bounds import bound_reached
from services.documents.child_frames import HEADER, ChildRequest, ChildSetup, frame
from services.gateways.python_child import ended, python_command, python_environment

_KEPT_VARIABLES = {"PATH", "HOME", "LANG", "LC_ALL", "PYTHONPATH", "LD_LIBRARY_PATH", "TMPDIR", "TZ", "VIRTUAL_ENV"}
_OUT_OF_MEMORY = (b"memory allocation of", b"bad_alloc", b"out of memory", b"MemoryError")
_REPLY_BYTES_PER_CHARACTER = 12
_REPLY_BYTES_FREE = 64_000_000


class ChildProcess:
    """Started, set up and asked one thing at a time. After anything but a proper reply it must be killed."""

    def __init__(self, process: Process, limits: ParsingSettings, errors: IO[bytes]) -> None:
        self._process = process
        self._limits = limits
        self._errors = errors
        self.requests = 0

    @classmethod
    async def start(cls, module: str, limits: ParsingSettings, errors: IO[bytes]) -> Self:
        """A child that has imported `module` and confined itself. `errors` takes its stderr and is then ours.

        The environment holds no setting of ours: a child that is taken over finds no key.
        """
        environment = {name: value for name, value in python_environment().items() if name in _KEPT_VARIABLES}
        process = await asyncio.create_subprocess_exec(
            *python_command(module),
            stdin=PIPE,
            stdout=PIPE,
            stderr=errors,
            env=environment,
            close_fds=True,
            start_new_session=True,  # a Ctrl-C at the terminal is for the parent to handle
        )
        child = cls(process, limits, errors)
        try:
            await child._exchange(ChildSetup(limits=limits, parent=os.getpid()))
        except BaseException:
            await child.kill()
            raise
        return child

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Asks the kernel: the event loop may not have heard yet. Leaves the exit status for the loop to collect."""
        if self._process.returncode is not None:
            return False
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        except ChildProcessError:
            return False

    async def ask(self, request: ChildRequest) -> bytes:
        """The JSON of the child's reply. Raises the failure that its death means."""
        self.requests += 1
        try:
            return await self._exchange(request)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise self.death_failure(await ended(self._process), request.name) from error

    async def _exchange(self, message: BaseModel) -> bytes:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(frame(message))
        await self._process.stdin.drain()
        (length,) = HEADER.unpack(await self._process.stdout.readexactly(HEADER.size))
        if length > _REPLY_BYTES_FREE + _REPLY_BYTES_PER_CHARACTER * self._limits.text_chars:
            raise PermanentFailure("corrupt", "the child's reply is larger than any document")
        return await self._process.stdout.readexactly(length)

    def death_failure(self, status: int, name: str) -> Failure:
        """What the way a child died says about the file it was reading."""
        if status == -signal.SIGXCPU:
            return bound_reached(
                "timeout", f"reading {name!r} takes too much processor time", "cpu_s", self._limits.cpu_s
            )
        if status == -signal.SIGKILL:
            return TransientFailure("worker_lost", f"the process that read {name!r} was killed from outside")
        self._errors.seek(0)
        if any(sign in self._errors.read()[-20_000:] for sign in _OUT_OF_MEMORY):
            return bound_reached(
                "memory", f"reading {name!r} takes too much memory", "memory_mb", self._limits.memory_mb
            )
        if status < 0:
            return PermanentFailure("corrupt", f"{name!r} crashes what reads it ({signal.Signals(-status).name})")
        return PermanentFailure("corrupt", f"the process that read {name!r} ended with status {status}")

    def send_kill(self) -> None:
        """End it; to be followed by `kill`, which waits."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def kill(self) -> None:
        """End it, wait until it is gone, close what is open. Also for one that is dead already."""
        self.send_kill()
        if self._process.stdin is not None:
            self._process.stdin.close()
        await ended(self._process)
        self._errors.close()
