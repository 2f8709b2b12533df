"""One sandbox from its making to its removal: running with a workspace on disk, or paused as one file."""

from __future__ import annotations

import asyncio
from pathlib import Path

from infra.e2b_local import sandbox_record, snapshot
from infra.e2b_local.cell import Cell, CommandRefused
from infra.e2b_local.cell_process import CellFailed
from infra.e2b_local.command import Command, CommandRequest
from infra.e2b_local.command_end import Cause
from infra.e2b_local.data_folder import DataFolder
from infra.e2b_local.host import Host
from infra.e2b_local.process_group_limits import MEBIBYTE
from infra.e2b_local.sandbox_record import SandboxRecord, State
from infra.e2b_local.workspace import Workspace, remove_tree
from infra.e2b_local.workspace_size import measure

_KEPT_RESULTS = 4
_PAUSED = Cause("stopped", "the sandbox was paused")
_KILLED = Cause("stopped", "the sandbox was killed")
_SERVER_STOPS = Cause("stopped", "the sandbox server is stopping")


class TagTaken(Exception):
    """A command with this tag runs in the sandbox, or has ended and can still be followed."""


class Sandbox:
    """Changes of state come one after the other. `record` is always what is on disk."""

    def __init__(self, record: SandboxRecord, data: DataFolder, host: Host) -> None:
        self.record = record
        self._data, self._host = data, host
        self._folder = data.sandbox(record.id)
        self._snapshot = data.snapshot(record.id)
        self._cell: Cell | None = None
        self._kept: list[Command] = []
        self._is_gone = False
        self._starting = asyncio.Lock()
        self.changing = asyncio.Lock()
        self.workspace = Workspace(self._folder / "view", record.owner)
        self.bin = self._folder / "bin"

    @property
    def is_running(self) -> bool:
        return self.record.state == "running"

    @property
    def commands(self) -> list[Command]:
        return self._cell.commands if self._cell is not None else []

    def create(self) -> None:
        """Its folder and workspace; the record comes last and makes it real."""
        self._folder.mkdir(mode=0o711)
        self._folder.chmod(0o711)
        self.workspace.create()
        self.record.write(self._folder)

    def mend(self) -> None:
        """Takes away what a killed server left beside the state that the record tells."""
        remove_tree(self._draft)
        remove_tree(self.bin)
        if self.is_running:
            self._snapshot.unlink(missing_ok=True)
        elif self._snapshot.exists():
            remove_tree(self._folder / "view")

    def update(self, *, state: State | None = None, end_at: float | None = None) -> None:
        changes = {name: value for name, value in (("state", state), ("end_at", end_at)) if value is not None}
        self.record = self.record.model_copy(update=changes)
        if not self._is_gone:
            self.record.write(self._folder)

    async def boot(self) -> Cell:
        """The running cell, started when there is none. CellFailed when the kernel refuses, CommandRefused when it is paused."""
        async with self.changing:
            if self._is_gone or not self.is_running:
                raise CommandRefused("the sandbox is not running any more")
            if self._cell is None or self._cell.ended.is_set():
                try:
                    self._cell = await Cell.start(self.record.id, self.workspace.home, self.record.owner, self._host)
                except OSError as error:
                    raise CellFailed(f"its processes cannot be bounded: {error}") from error
            return self._cell

    async def run(self, request: CommandRequest) -> Command:
        """CommandRefused, CellFailed, or TagTaken: what has a tag is started once, however many ask for it at once."""
        cell = await self.boot()
        if request.tag is None:
            return await cell.run(request)
        async with self._starting:
            if self.command_by_tag(request.tag) is not None:
                raise TagTaken(f"a command with the tag {request.tag!r} runs, or has just ended")
            command = await cell.run(request)
            self._keep(command)
            return command

    def command_by_pid(self, pid: int) -> Command | None:
        """Only one that this server started here and that runs: any other number names nothing."""
        return next((command for command in self.commands if command.pid == pid), None)

    def command_by_tag(self, tag: str) -> Command | None:
        """Also one of the last that ended: its output and end can still be had."""
        return next((command for command in reversed(self._kept) if command.request.tag == tag), None)

    def signal(self, command: Command, number: int) -> None:
        if self._cell is not None:
            self._cell.signal(command, number)

    async def room_bytes(self) -> int:
        """What may still be written into the workspace; 0 when it holds as many files as it may."""
        limits = self._host.limits
        usage = await asyncio.to_thread(measure, self.workspace.home, limits.workspace_files)
        return max(0, limits.workspace_mb * MEBIBYTE - usage.bytes) if usage.complete else 0

    async def pause(self) -> bool:
        """Ends its processes and packs its files; what was only in its memory or its /tmp is gone. False when it was paused."""
        async with self.changing:
            if self._is_gone or not self.is_running:
                return False
            await self._stop(_PAUSED)
            await asyncio.to_thread(snapshot.pack, self.workspace.home, self._snapshot)
            self.update(state="paused")
            await asyncio.to_thread(remove_tree, self._folder / "view")
            return True

    async def resume(self) -> bool:
        """False when it ran. One of snapshot.BROKEN when its files cannot be had."""
        async with self.changing:
            if self._is_gone or self.is_running:
                return False
            await asyncio.to_thread(self._unpack)
            self.update(state="running")
            self._snapshot.unlink(missing_ok=True)
            return True

    async def destroy(self) -> None:
        async with self.changing:
            self._is_gone = True
            sandbox_record.forget(self._folder)
            await self._stop(_KILLED)
            self._snapshot.unlink(missing_ok=True)
            await asyncio.to_thread(remove_tree, self._folder)

    async def close(self) -> None:
        """Its processes end with the server; its state stays."""
        async with self.changing:
            await self._stop(_SERVER_STOPS)

    async def _stop(self, cause: Cause) -> None:
        cell, self._cell = self._cell, None
        if cell is not None:
            await cell.stop(cause)

    def _unpack(self) -> None:
        remove_tree(self._draft)
        draft = Workspace(self._draft, self.record.owner)
        draft.create()
        snapshot.unpack(self._snapshot, draft.home, self.record.owner)
        remove_tree(self._folder / "view")
        self._draft.rename(self._folder / "view")

    @property
    def _draft(self) -> Path:
        return self._folder / "view.draft"

    def _keep(self, command: Command) -> None:
        """Running ones always; of the ended the latest, as long as together they are no longer than one may be."""
        self._kept.append(command)
        ended = [each for each in self._kept if each.end is not None]
        most = self._host.limits.output_mb * MEBIBYTE
        while len(ended) > _KEPT_RESULTS or sum(each.written_bytes for each in ended) > most:
            self._kept.remove(ended.pop(0))
