"""Looks at a running sandbox several times a second for what the kernel does not bound by itself."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from infra.e2b_local.command_end import Cause, files_cause, memory_cause, processes_cause, quota_cause
from infra.e2b_local.process_group_limits import MEBIBYTE, ProcessGroup
from infra.e2b_local.workspace_size import Usage, measure, unlinked_bytes
from schemas.sandboxes import SandboxLimits

_LOOKS_AT_LIMIT = 5
_NEARLY = 0.98


class Watch:
    """`look` blocks for as long as walking the workspace takes: call it in a thread, one at a time."""

    def __init__(self, home: Path, group: ProcessGroup, first_pid: int, limits: SandboxLimits) -> None:
        self._home = home
        self._group = group
        self._tmp = Path(f"/proc/{first_pid}/root/tmp")
        self._limits = limits
        self._looks_at_limit = 0
        self._refused = group.refused_tasks()
        self._allowed: Usage | None = None

    def look(self) -> Cause | None:
        """Why everything in the sandbox must end now, or None."""
        return self._memory() or self._processes() or self._files() or self._disk()

    def is_workspace_full(self) -> bool:
        """So nearly that a failed write explains a failed command."""
        try:
            usage = measure(self._home, self._limits.workspace_files)
        except OSError:
            return False
        most = self._limits.workspace_mb * MEBIBYTE
        return not usage.complete or usage.bytes >= most * _NEARLY

    def _memory(self) -> Cause | None:
        used = self._group.memory_bytes()
        over = used is not None and used > self._limits.memory_mb * MEBIBYTE
        return memory_cause(self._limits) if over else None

    def _processes(self) -> Cause | None:
        """A program may meet the limit and cope; one that stays at it is a fork bomb."""
        refused = self._group.refused_tasks()
        at_limit = refused > self._refused or self._group.tasks() >= self._limits.processes
        self._refused = refused
        self._looks_at_limit = self._looks_at_limit + 1 if at_limit else 0
        if self._looks_at_limit < _LOOKS_AT_LIMIT:
            return None
        self._looks_at_limit = 0
        return processes_cause(self._limits)

    def _files(self) -> Cause | None:
        """Over the quota a command may go on as long as it does not add to it: or nothing could be removed any more."""
        usage = measure(self._home, 2 * self._limits.workspace_files)
        usage = Usage(usage.bytes + unlinked_bytes(self._home, self._group.pids()), usage.files, usage.complete)
        most = Usage(self._limits.workspace_mb * MEBIBYTE, self._limits.workspace_files)
        allowed = self._allowed or _larger(most, usage)
        if usage.files > allowed.files or not usage.complete or self._files_in_memory() > most.files:
            self._allowed = None
            return files_cause(self._limits)
        if usage.bytes > allowed.bytes:
            self._allowed = None
            return quota_cause(self._limits)
        self._allowed = _larger(most, usage)
        return None

    def _files_in_memory(self) -> int:
        try:
            found = os.statvfs(self._tmp)
        except OSError:  # it is ending
            return 0
        return found.f_files - found.f_ffree

    def _disk(self) -> Cause | None:
        if shutil.disk_usage(self._home).free >= self._limits.disk_reserve_mb * MEBIBYTE:
            return None
        return Cause(
            "quota", f"the machine has less than {self._limits.disk_reserve_mb} MiB of disk left (disk_reserve_mb)"
        )


def _larger(one: Usage, other: Usage) -> Usage:
    return Usage(max(one.bytes, other.bytes), max(one.files, other.files))
