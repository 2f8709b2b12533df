"""Warm child processes: a document that crashes, hangs or swells what reads it takes that child with it, nothing else.

What holds the processor for long belongs here, not in threads of the serving process: those hold the interpreter's lock
against every search.
"""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import suppress
from typing import ClassVar, TypeVar

from schemas.errors import PermanentFailure, TransientFailure
from schemas.settings import ParsingSettings
from services.documents.bounds import bound_reached
from services.documents.child_frames import ChildReply, ChildRequest
from services.documents.child_process import ChildProcess

REQUESTS_PER_CHILD = 500
"""Then a child is replaced: libraries leak."""
Reply = TypeVar("Reply", bound=ChildReply)


class ChildPool:
    """At most `limits.workers` requests at a time; others wait in line. Belongs to one event loop.

    Kinds of pools name the module that their children run, which calls `child_loop.serve`.
    """

    module: ClassVar[str]

    def __init__(self, limits: ParsingSettings, requests_per_child: int = REQUESTS_PER_CHILD) -> None:
        self._limits = limits
        self._requests_per_child = requests_per_child
        self._turns = asyncio.Semaphore(limits.workers)
        self._idle: list[ChildProcess] = []
        self._busy: set[ChildProcess] = set()
        self._chores: set[asyncio.Task[None]] = set()
        self._stopped = False

    async def start(self) -> None:
        """Start all children at once and wait until they are ready."""
        self._stopped = False
        self._idle += await asyncio.gather(*(self._new_child() for _ in range(self._limits.workers)))

    async def stop(self) -> None:
        """End every child, those at work too."""
        self._stopped = True
        while self._chores:
            await asyncio.gather(*self._chores, return_exceptions=True)
        children = [*self._idle, *self._busy]
        self._idle.clear()
        await asyncio.gather(*(child.kill() for child in children))

    @property
    def child_pids(self) -> list[int]:
        return [child.pid for child in (*self._idle, *self._busy)]

    @property
    def busy_pids(self) -> list[int]:
        return [child.pid for child in self._busy]

    async def ask(self, request: ChildRequest, kind: type[Reply]) -> Reply:
        """A child's reply. Cancelling kills the child.

        Raises PermanentFailure (the document's fault: timeout, memory, corrupt and what the child says) or
        TransientFailure("worker_lost") when someone else killed the child or the pool is stopping.
        """
        async with self._turns:
            child = await self._take()
            clean = False
            try:
                body = await self._ask(child, request)
                clean = True
            finally:
                self._busy.discard(child)
                self._give_back(child, clean=clean)
        reply = await asyncio.to_thread(kind.model_validate_json, body)
        if reply.code is not None:
            raise PermanentFailure(reply.code, reply.detail)
        return reply

    async def _ask(self, child: ChildProcess, request: ChildRequest) -> bytes:
        try:
            async with asyncio.timeout(self._limits.wall_s):
                return await child.ask(request)
        except TimeoutError as error:
            what = f"reading {request.name!r} takes too long"
            raise bound_reached("timeout", what, "wall_s", self._limits.wall_s) from error

    async def _take(self) -> ChildProcess:
        """A child that is alive; a new one when those at hand have died or are still being started."""
        while self._idle:
            child = self._idle.pop()
            if child.alive:
                self._busy.add(child)
                return child
            self._chore(child)
        if self._stopped:
            raise TransientFailure("worker_lost", "the pool is stopping")
        child = await self._new_child()
        self._busy.add(child)
        return child

    async def _new_child(self) -> ChildProcess:
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - the child object closes it
        try:
            return await ChildProcess.start(self.module, self._limits, errors)
        except (OSError, asyncio.IncompleteReadError) as error:
            raise TransientFailure("worker_lost", f"a process of {self.module} cannot be started: {error}") from error

    def _give_back(self, child: ChildProcess, *, clean: bool) -> None:
        """Keep a child that answered properly; kill any other at once and warm a new one beside the work."""
        if clean and not self._stopped and child.requests < self._requests_per_child:
            self._idle.append(child)
            return
        self._chore(child)

    def _chore(self, child: ChildProcess) -> None:
        child.send_kill()
        task = asyncio.create_task(self._replace(child))
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)

    async def _replace(self, child: ChildProcess) -> None:
        await child.kill()
        if self._stopped:
            return
        with suppress(TransientFailure):  # the next file tries again and reports it
            fresh = await self._new_child()
            if self._stopped or len(self._idle) + len(self._busy) >= self._limits.workers:
                await fresh.kill()
            else:
                self._idle.append(fresh)
