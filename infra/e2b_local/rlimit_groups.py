"""Bounds without a control group: each process by its own limits, all of them together by looking and counting.

Slower to notice than the kernel is: between two looks a sandbox may take more than its share, each process at most twice the
memory. The count of processes is exact from Linux 5.14 on, where a user namespace counts its own.
"""

from __future__ import annotations

import contextlib
import platform
import resource
from collections.abc import Iterator
from pathlib import Path

from infra.e2b_local.process_group_limits import MEBIBYTE, ProcessGroup, limits_of_each_process
from schemas.sandboxes import SandboxLimits

_OLDEST_KERNEL = (5, 14)
_PAGE = resource.getpagesize()


class RlimitGroups:
    """For an ordinary user without a delegated control group, and for root where they cannot be written."""

    kind = "limits of each process"
    memory_is_counted = False

    def create(self, name: str, limits: SandboxLimits) -> ProcessGroup:
        return _RlimitGroup(limits)

    def sweep(self) -> None:
        return

    def limits_of_each_process(self, limits: SandboxLimits) -> dict[int, int]:
        own = {resource.RLIMIT_DATA: 2 * limits.memory_mb * MEBIBYTE, resource.RLIMIT_NPROC: limits.processes}
        return limits_of_each_process(limits) | own


def counts_processes_by_namespace() -> bool:
    numbers = platform.release().split(".")[:2]
    return tuple(int("".join(filter(str.isdigit, each)) or 0) for each in numbers) >= _OLDEST_KERNEL


class _RlimitGroup:
    def __init__(self, limits: SandboxLimits) -> None:
        self._limits = limits
        self._namespace: Path | None = None

    def admit(self, pid: int) -> None:
        self._namespace = _namespace(pid)

    def pids(self) -> list[int]:
        return [pid for pid in _processes() if self._is_member(pid)]

    def memory_bytes(self) -> int | None:
        """Their own pages; pages that several share count for each in part, but only when the rough sum is over the limit."""
        pids = self.pids()
        resident = sum(map(_resident_bytes, pids))
        return resident if resident <= self._limits.memory_mb * MEBIBYTE else sum(map(_proportional_bytes, pids))

    def tasks(self) -> int:
        return sum(map(_threads, self.pids()))

    def memory_kills(self) -> int:
        return 0

    def refused_tasks(self) -> int:
        return 0

    def remove(self) -> None:
        return

    def _is_member(self, pid: int) -> bool:
        try:
            return _namespace(pid) == self._namespace
        except OSError:
            return False


def _namespace(pid: int) -> Path:
    return Path(f"/proc/{pid}/ns/pid").readlink()


def _processes() -> Iterator[int]:
    return (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())


def _resident_bytes(pid: int) -> int:
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    return 0


def _proportional_bytes(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    return 0


def _threads(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return int(stat.rpartition(")")[2].split()[17])
    return 0
