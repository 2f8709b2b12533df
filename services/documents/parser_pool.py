"""Warm child processes that parse files: a file that crashes, hangs or swells takes its child with it, nothing else."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import suppress
from pathlib import Path

from schemas.errors import PermanentFailure, TransientFailure
from schemas.parsed_documents import ParsedDocument
from schemas.settings import ParsingSettings
from services.documents.bounds import bound_reached
from services.documents.parser_frames import ParseReply, ParseRequest
from services.documents.parser_process import ParserProcess

FILES_PER_CHILD = 500
"""Then a child is replaced: libraries leak."""


class ParserPool:
    """At most `limits.workers` files at a time; others wait in line. Belongs to one event loop."""

    def __init__(self, limits: ParsingSettings, files_per_child: int = FILES_PER_CHILD) -> None:
        self._limits = limits
        self._files_per_child = files_per_child
        self._turns = asyncio.Semaphore(limits.workers)
        self._idle: list[ParserProcess] = []
        self._busy: set[ParserProcess] = set()
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

    async def parse(self, path: Path, name: str, media_type: str | None, scratch: Path, depth: int) -> ParsedDocument:
        """Parse in a child; see `parse_file`. Cancelling kills the child.

        Raises PermanentFailure (the file's fault: timeout, memory, corrupt and what parse_file says) or
        TransientFailure("worker_lost") when someone else killed the child or the pool is stopping.
        """
        request = ParseRequest(path=str(path), name=name, media_type=media_type, scratch=str(scratch), depth=depth)
        async with self._turns:
            child = await self._take()
            clean = False
            try:
                reply = await self._ask(child, request)
                clean = True
            finally:
                self._busy.discard(child)
                self._give_back(child, clean=clean)
        if reply.document is None:
            raise PermanentFailure(reply.code or "corrupt", reply.detail)
        _check_members(reply.document, scratch)
        return reply.document

    async def _ask(self, child: ParserProcess, request: ParseRequest) -> ParseReply:
        try:
            async with asyncio.timeout(self._limits.wall_s):
                return await child.ask(request)
        except TimeoutError as error:
            what = f"reading {request.name!r} takes too long"
            raise bound_reached("timeout", what, "wall_s", self._limits.wall_s) from error

    async def _take(self) -> ParserProcess:
        """A child that is alive; a new one when those at hand have died or are still being started."""
        while self._idle:
            child = self._idle.pop()
            if child.alive:
                self._busy.add(child)
                return child
            self._chore(child)
        if self._stopped:
            raise TransientFailure("worker_lost", "the parser pool is stopping")
        child = await self._new_child()
        self._busy.add(child)
        return child

    async def _new_child(self) -> ParserProcess:
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - the child object closes it
        try:
            return await ParserProcess.start(self._limits, errors)
        except (OSError, asyncio.IncompleteReadError) as error:
            raise TransientFailure("worker_lost", f"a parser process cannot be started: {error}") from error

    def _give_back(self, child: ParserProcess, *, clean: bool) -> None:
        """Keep a child that answered properly; kill any other at once and warm a new one beside the work."""
        if clean and not self._stopped and child.files < self._files_per_child:
            self._idle.append(child)
            return
        self._chore(child)

    def _chore(self, child: ParserProcess) -> None:
        child.send_kill()
        task = asyncio.create_task(self._replace(child))
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)

    async def _replace(self, child: ParserProcess) -> None:
        await child.kill()
        if self._stopped:
            return
        with suppress(TransientFailure):  # the next file tries again and reports it
            fresh = await self._new_child()
            if self._stopped or len(self._idle) + len(self._busy) >= self._limits.workers:
                await fresh.kill()
            else:
                self._idle.append(fresh)


def _check_members(document: ParsedDocument, scratch: Path) -> None:
    """A child is not to be believed blindly: its members are plain files in the scratch folder, nothing else."""
    root = scratch.resolve()
    for member in document.members:
        file = Path(member.file)
        if file.is_symlink() or not file.is_file() or file.resolve().parent != root:
            raise PermanentFailure("corrupt", f"the parser names a file that it was not given: {member.path!r}")
