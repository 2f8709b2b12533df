"""One child process that is started, watched, started again when it dies, and ended when asked."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

from infra.local_stack import process_record
from infra.local_stack.data_dir import DataDir
from infra.local_stack.process_record import ProcessRecord
from schemas.errors import EngineDown, PerdureError

log = logging.getLogger(__name__)

LAUNCHER = Path(__file__).with_name("exec_as_child.py")
FIRST_START_TRIES = 3
BACKOFF_FIRST_S = 0.1
BACKOFF_MAX_S = 5.0
STEADY_AFTER_S = 30.0


@dataclass(frozen=True)
class Command:
    """How to run a program: `argv[0]` is a path; the environment is whole, nothing is inherited.

    `stop_signal` asks for an orderly end, which may take `stop_within_s`; `death_signal` is what the kernel sends when
    the supervisor is killed, and what ends a leftover.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    identity: str = "self"
    stop_signal: int = signal.SIGTERM
    stop_within_s: float = 3.0
    death_signal: int = signal.SIGKILL
    ready_within_s: float = 60.0
    ports: dict[str, int] = field(default_factory=dict)

    async def spawn(self, output: IO[bytes]) -> asyncio.subprocess.Process:
        """Starts it through the launcher, which ties it to this process and gives it its identity."""
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("children must be started from the main thread: they end when the starting thread does")
        launcher = (sys.executable, "-I", "-S", str(LAUNCHER), str(os.getpid()), str(int(self.death_signal)))
        return await asyncio.create_subprocess_exec(
            *launcher,
            self.identity,
            *self.argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=self.cwd,
            env=dict(self.env),
        )


class Program(Protocol):
    """What the supervisor needs to know about a program. Inherit from it: only `command` has no default."""

    name: str

    def command(self) -> Command: ...

    async def prepare(self) -> None:
        """Before every start, also after a crash."""
        return

    async def answer(self) -> None:
        """Returns when the program does its work; awaited for as long as it runs and `ready_within_s` allows."""
        return

    def move(self) -> None:
        """Chooses other ports. Only called while nobody has been told the present ones."""
        return


class SupervisedProcess:
    """Keeps one program running. Must be used on the main thread's event loop.

    The kernel sends the death signal when the *thread* that forked ends, and only the main thread lives as long as the
    process does.
    """

    def __init__(self, program: Program, data_dir: DataDir, on_restart: Callable[[str], None]) -> None:
        self.name = program.name
        self._program = program
        self._data_dir = data_dir
        self._on_restart = on_restart
        self._process: asyncio.subprocess.Process | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._log_began = 0

    @property
    def pid(self) -> int | None:
        """The running process, or None while it is being started again."""
        running = self._process is not None and self._process.returncode is None
        return self._process.pid if running and self._process else None

    async def start(self) -> None:
        """Returns when the program answers. A first start that fails is tried again on other ports."""
        for attempt in range(FIRST_START_TRIES):
            try:
                await self._start_once()
                break
            except EngineDown:
                if attempt == FIRST_START_TRIES - 1:
                    raise
                log.warning("%s did not start; trying again", self.name, exc_info=True)
                self._program.move()
                await asyncio.sleep(BACKOFF_FIRST_S * 2**attempt)
        self._watcher = asyncio.create_task(self._watch(), name=f"watch {self.name}")

    async def stop(self) -> None:
        """Asks the program to end, insists after its deadline, and leaves nothing of it running."""
        if self._watcher is not None:
            self._watcher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watcher
            self._watcher = None
        if self._process is not None:
            command = self._program.command()
            await self._end(self._process, (command.stop_signal, command.stop_within_s), (command.death_signal, 1.0))
        process_record.forget(self._data_dir.run, self.name)

    async def _start_once(self) -> None:
        await self._program.prepare()
        command = self._program.command()
        process = await self._spawn(command)
        self._process = process
        answered = asyncio.create_task(self._program.answer())
        exited = asyncio.create_task(process.wait())
        try:
            await asyncio.wait({answered, exited}, timeout=command.ready_within_s, return_when=asyncio.FIRST_COMPLETED)
            if answered.done() and not exited.done():
                answered.result()
                return
            what = "did not answer in time" if process.returncode is None else f"ended with {process.returncode}"
            failure = EngineDown(self.name, f"{what}: {self._data_dir.complaint(self.name, self._log_began)}")
        except Exception as error:
            failure = EngineDown(self.name, f"could not be set up: {error}")
            failure.__cause__ = error
        finally:
            answered.cancel()
            exited.cancel()
        await self._end(process, (command.death_signal, 2.0))
        raise failure

    async def _spawn(self, command: Command) -> asyncio.subprocess.Process:
        with self._data_dir.open_log(self.name) as output:
            self._log_began = output.tell()
            process = await command.spawn(output)
        record = ProcessRecord.of(self.name, process.pid, int(command.death_signal), command.ports)
        if record is not None:
            record.write(self._data_dir.run)
        return process

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        backoff_s = BACKOFF_FIRST_S
        while self._process is not None:
            began = loop.time()
            code = await self._process.wait()
            _kill_group(self._process.pid)
            if loop.time() - began > STEADY_AFTER_S:
                backoff_s = BACKOFF_FIRST_S
            log.error("%s ended with %s; starting it again", self.name, code)
            backoff_s = await self._start_again(backoff_s)
            try:
                self._on_restart(self.name)
            except Exception:  # the watch must go on, whatever the listener does
                log.exception("telling of the restart of %s", self.name)

    async def _start_again(self, backoff_s: float) -> float:
        """Tries until the program answers on its old address; returns the next pause, should it die soon again."""
        while True:
            await asyncio.sleep(backoff_s)
            backoff_s = min(backoff_s * 2, BACKOFF_MAX_S)
            try:
                await self._start_once()
                return backoff_s
            except (PerdureError, OSError) as error:
                log.error("%s cannot be started, next try in %.1f s: %s", self.name, backoff_s, error)

    async def _end(self, process: asyncio.subprocess.Process, *steps: tuple[int, float]) -> None:
        for number, patience_s in (*steps, (signal.SIGKILL, 5.0)):
            if process.returncode is not None:
                break
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), patience_s)
        _kill_group(process.pid)


def _kill_group(leader: int) -> None:
    """Ends what the program started in its own session and left behind."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
