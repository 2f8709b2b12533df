"""A sandbox while it runs: its commands, the watch over its limits, and the one end that they all share."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import logging
import os
import signal
from collections.abc import Coroutine
from pathlib import Path

from infra.e2b_local.cell_arguments import cell_arguments
from infra.e2b_local.cell_process import CellProcess, file_in_memory
from infra.e2b_local.command import Command, CommandRequest, Evidence
from infra.e2b_local.command_end import Cause, Seen, command_end, output_cause, processes_cause
from infra.e2b_local.host import Host
from infra.e2b_local.process_group_limits import MEBIBYTE, ProcessGroup
from infra.e2b_local.watch import Watch
from schemas.sandboxes import SandboxLimits

log = logging.getLogger(__name__)
_ANSWER_WITHIN_S = 20.0
_OBEY_WITHIN_S = 2.0
_LOOK_EVERY_S, _LOOK_IDLE_S, _LOOK_ALONE_S = 0.2, 1.0, 10.0
"""While commands run, while only what they left behind does, and while nothing does."""

_LOOK_SHARE = 9
"""A look at a large workspace takes time: so many times as long nobody looks."""

_NO_PROCESS_LEFT = 11  # EAGAIN of fork
_GONE = Cause("stopped", "the sandbox's first process ended")


class CommandRefused(Exception):
    """The command could not be started: no such folder, or no process left for it."""

    def __init__(self, message: str, *, at_limit: bool = False) -> None:
        super().__init__(message)
        self.at_limit = at_limit


class Cell:
    """`ended` says that it is over, also by itself. All of it on the main thread's event loop."""

    def __init__(self, process: CellProcess, group: ProcessGroup, watch: Watch, limits: SandboxLimits) -> None:
        self._process, self._group, self._watch, self._limits = process, group, watch, limits
        self._numbers = itertools.count(1)
        self._commands: dict[int, Command] = {}
        self._left_behind: list[Command] = []  # ended, but their pipes are held open by what they started
        self._tasks: set[asyncio.Task[None]] = set()
        self._busy = asyncio.Event()
        self._stopped_for: Cause | None = None
        self.ended = asyncio.Event()
        process.listen(self._understand)
        self._watching = asyncio.create_task(self._keep_watch(), name=f"watch {process.pid}")
        self._ending = asyncio.create_task(self._await_end(), name=f"end of {process.pid}")

    @classmethod
    async def start(cls, sandbox_id: str, home: Path, owner: int | None, host: Host) -> Cell:
        """CellFailed or OSError when the kernel refuses any part of it: nothing has run then."""
        group = host.groups.create(sandbox_id, host.limits)
        arguments = functools.partial(cell_arguments, host, sandbox_id)
        try:
            process = await CellProcess.start(arguments, owner, memory_is_counted=host.groups.memory_is_counted)
        except BaseException:
            group.remove()
            raise
        try:
            await asyncio.to_thread(group.admit, process.pid)  # the kernel takes its time to move a process
            with contextlib.suppress(PermissionError):  # already further back
                os.setpriority(os.PRIO_PROCESS, process.pid, host.limits.niceness)
        except OSError:
            process.kill()
            await process.wait()
            group.remove()
            raise
        return cls(process, group, Watch(home, group, process.pid, host.limits), host.limits)

    @property
    def commands(self) -> list[Command]:
        """Those that run."""
        return [command for command in self._commands.values() if command.started.done()]

    async def run(self, request: CommandRequest) -> Command:
        """Returns when the command has started. CommandRefused when it cannot."""
        evidence = Evidence(self._group.memory_kills(), self._group.refused_tasks())
        command = Command(
            request, next(self._numbers), self._limits.output_mb * MEBIBYTE, evidence, self._end_for_output
        )
        self._commands[command.number] = command
        try:
            self._send_request(command)
            await asyncio.wait_for(asyncio.shield(command.started), _ANSWER_WITHIN_S)
        except (TimeoutError, OSError):
            self._forget(command)
            await self.stop(Cause("stopped", "the sandbox did not answer any more"))
            raise CommandRefused("the sandbox did not answer and was ended; its files are kept") from None
        except CommandRefused:
            self._forget(command)
            raise
        return command

    def end(self, command: Command, cause: Cause) -> None:
        """Ends a command and its session."""
        if command.end is None:
            command.cause = command.cause or cause
            self.signal(command, signal.SIGKILL)
            self._insist_soon([command])

    def end_all(self, cause: Cause) -> None:
        """Ends all processes but the first, those that commands left behind as well."""
        running = list(self._commands.values())
        for command in running:
            command.cause = command.cause or cause
        self._say("clear")
        self._insist_soon(running)

    def signal(self, command: Command, number: int) -> None:
        if command.started.done():
            self._say(f"signal {command.pid} {number}")

    async def stop(self, cause: Cause) -> None:
        """Returns when no process of the sandbox is left and its commands have been told."""
        self._stopped_for = self._stopped_for or cause
        self._process.kill()
        await asyncio.shield(self._ending)

    def _insist_soon(self, commands: list[Command]) -> None:
        """What does not obey is ended with its whole sandbox."""

        def insist() -> None:
            if not self.ended.is_set() and any(command.end is None for command in commands):
                self._process.kill()

        asyncio.get_running_loop().call_later(_OBEY_WITHIN_S, insist)

    def _say(self, words: str) -> None:
        with contextlib.suppress(OSError):  # it is ending, or about to be ended for not reading
            self._process.say(words)

    def _send_request(self, command: Command) -> None:
        stdin, our_stdin = os.pipe() if command.request.takes_input else (os.open(os.devnull, os.O_RDONLY), None)
        (our_stdout, stdout), (our_stderr, stderr) = os.pipe(), os.pipe()
        command.connect(our_stdin, our_stdout, our_stderr)
        theirs = (file_in_memory(command.request.encoded()), stdin, stdout, stderr)
        try:
            self._process.say(f"run {command.number}", theirs)
        finally:
            for each in theirs:
                os.close(each)

    def _forget(self, command: Command) -> None:
        self._commands.pop(command.number, None)
        command.disconnect()

    def _understand(self, words: list[str]) -> None:
        """Believed only as far as it fits what we know."""
        with contextlib.suppress(ValueError, IndexError, KeyError):
            command = self._commands[int(words[1])]
            if words[0] == "started" and not command.started.done():
                command.started.set_result(int(words[2]))
                self._keep_time(command)
            elif words[0] == "refused" and not command.started.done():
                at_limit = int(words[2]) == _NO_PROCESS_LEFT
                why = processes_cause(self._limits).detail if at_limit else words[3]
                command.started.set_exception(CommandRefused(why, at_limit=at_limit))
            elif words[0] == "ended" and command.started.done():
                del self._commands[command.number]
                self._keep(self._tell_end(command, int(words[2])))

    def _keep_time(self, command: Command) -> None:
        """From its start on, also when whoever asked for it has gone."""
        cause = Cause("timeout", command.request.too_slow)
        command.deadline = asyncio.get_running_loop().call_later(command.request.seconds, self.end, command, cause)
        self._busy.set()

    def _keep(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell_end(self, command: Command, status: int) -> None:
        command.drain()
        self._left_behind = [each for each in (*self._left_behind, command) if each.is_connected]
        failed = status != 0 and command.cause is None
        seen = Seen(
            memory_kills=self._group.memory_kills() - command.evidence.memory_kills,
            refused_tasks=self._group.refused_tasks() - command.evidence.refused_tasks,
            workspace_full=failed and await asyncio.to_thread(self._watch.is_workspace_full),
            left_at_limit=not self._commands and self._group.tasks() >= self._limits.processes,
        )
        if seen.left_at_limit:
            self.end_all(processes_cause(self._limits))
        command.finish(command_end(status, command.cause, seen, self._limits))

    async def _await_end(self) -> None:
        await self._process.wait()
        self._watching.cancel()
        await asyncio.gather(self._watching, *self._tasks, return_exceptions=True)
        for command in list(self._commands.values()):
            del self._commands[command.number]
            if not command.started.done():
                command.started.set_exception(CommandRefused("the sandbox ended"))
                continue
            killed_for_memory = self._group.memory_kills() > command.evidence.memory_kills
            command.cause = command.cause or self._stopped_for or (None if killed_for_memory else _GONE)
            await self._tell_end(command, signal.SIGKILL)
        for command in self._left_behind:
            command.disconnect()
        await asyncio.to_thread(self._group.remove)
        self.ended.set()

    def _end_for_output(self, command: Command) -> None:
        self.end(command, output_cause(self._limits))

    async def _keep_watch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                cause = await asyncio.to_thread(self._watch.look)
            except OSError:
                log.exception("the limits of a sandbox cannot be watched, so it is ended")
                self._process.kill()
                return
            if cause is not None:
                self.end_all(cause)
            pause_s = max(_LOOK_EVERY_S, _LOOK_SHARE * (loop.time() - began))
            if self._commands:
                await asyncio.sleep(pause_s)
                continue
            self._busy.clear()
            alone = await asyncio.to_thread(self._group.tasks) <= 1
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._busy.wait(), max(_LOOK_ALONE_S if alone else _LOOK_IDLE_S, pause_s))
