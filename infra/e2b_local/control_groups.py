"""Bounds by control groups (cgroups), version 1 or 2, where this process may make some."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from infra.e2b_local.process_group_limits import MEBIBYTE, ProcessGroup, limits_of_each_process
from schemas.sandboxes import SandboxLimits

_PERIOD_US = 100_000
_REMOVE_WITHIN_S = 2.0


@dataclass(frozen=True)
class _Files:
    """Where each number stands. Paths are the sandbox's folder of a controller and the file in it."""

    folders: tuple[Path, ...]
    settings: tuple[tuple[Path, str], ...]
    optional: tuple[tuple[Path, str], ...]
    tasks: Path
    memory_kills: Path
    refused_tasks: Path


class ControlGroups:
    """Groups below `memory`, `pids` and `cpu`: folders of one controller each, or three times the same one (version 2)."""

    memory_is_counted = True

    def __init__(self, version: int, memory: Path, pids: Path, cpu: Path | None, base: str) -> None:
        """`base` is the name of a group, ours alone, that holds those of the sandboxes."""
        self._base = base
        self.kind = f"control groups, version {version}"
        self._version = version
        self._memory, self._pids, self._cpu = memory, pids, cpu

    def create(self, name: str, limits: SandboxLimits) -> ProcessGroup:
        files = self._files_1(name, limits) if self._version == 1 else self._files_2(name, limits)
        return _ControlGroup(files, self._prepare_base if self._version == 2 else None)

    def limits_of_each_process(self, limits: SandboxLimits) -> dict[int, int]:
        return limits_of_each_process(limits)

    def sweep(self) -> None:
        """Takes away groups that a killed server left, and the base when none is in use."""
        for controller in {self._memory, self._pids, *([self._cpu] if self._cpu is not None else [])}:
            base = controller / self._base
            if base.is_dir():
                for folder in (*(each for each in base.iterdir() if each.is_dir()), base):
                    with contextlib.suppress(OSError):
                        folder.rmdir()

    def _files_1(self, name: str, limits: SandboxLimits) -> _Files:
        memory, pids = self._memory / self._base / name, self._pids / self._base / name
        most = str(limits.memory_mb * MEBIBYTE)
        cpu: tuple[tuple[Path, str], ...] = ()
        if self._cpu is not None:
            folder = self._cpu / self._base / name
            cpu = (
                (folder / "cpu.cfs_period_us", str(_PERIOD_US)),
                (folder / "cpu.cfs_quota_us", str(int(limits.cpus * _PERIOD_US))),
            )
        return _Files(
            folders=(memory, pids, *(path.parent for path, _ in cpu[:1])),
            settings=((memory / "memory.limit_in_bytes", most), (pids / "pids.max", str(limits.processes)), *cpu),
            optional=((memory / "memory.memsw.limit_in_bytes", most),),
            tasks=pids / "pids.current",
            memory_kills=memory / "memory.oom_control",
            refused_tasks=pids / "pids.events",
        )

    def _files_2(self, name: str, limits: SandboxLimits) -> _Files:
        folder = self._memory / self._base / name
        quota = (folder / "cpu.max", f"{int(limits.cpus * _PERIOD_US)} {_PERIOD_US}")
        return _Files(
            folders=(folder,),
            settings=(
                (folder / "memory.max", str(limits.memory_mb * MEBIBYTE)),
                (folder / "pids.max", str(limits.processes)),
            ),
            optional=((folder / "memory.swap.max", "0"), *((quota,) if self._cpu is not None else ())),
            tasks=folder / "pids.current",
            memory_kills=folder / "memory.events",
            refused_tasks=folder / "pids.events",
        )

    def _prepare_base(self) -> None:
        """A group of version 2 that holds groups must hand its controllers down, and holds no process itself."""
        base = self._memory / self._base
        base.mkdir(exist_ok=True)
        wanted = "+memory +pids" + (" +cpu" if self._cpu is not None else "")
        (base / "cgroup.subtree_control").write_text(wanted, encoding="ascii")


class _ControlGroup:
    def __init__(self, files: _Files, prepare: Callable[[], None] | None) -> None:
        self._files = files
        if prepare is not None:
            prepare()
        for folder in files.folders:
            folder.mkdir(parents=True, exist_ok=True)
        for path, value in files.settings:
            path.write_text(value, encoding="ascii")
        for path, value in files.optional:
            with contextlib.suppress(OSError):  # no swap is counted here, or no share of processors
                path.write_text(value, encoding="ascii")

    def admit(self, pid: int) -> None:
        for folder in self._files.folders:
            (folder / "cgroup.procs").write_text(str(pid), encoding="ascii")

    def pids(self) -> list[int]:
        try:
            words = (self._files.folders[0] / "cgroup.procs").read_text(encoding="ascii").split()
        except OSError:
            return []
        return [int(each) for each in words if each != "0"]

    def memory_bytes(self) -> int | None:
        return None

    def tasks(self) -> int:
        with contextlib.suppress(OSError, ValueError):
            return int(self._files.tasks.read_text(encoding="ascii"))
        return 0

    def memory_kills(self) -> int:
        return _counter(self._files.memory_kills, "oom_kill")

    def refused_tasks(self) -> int:
        return _counter(self._files.refused_tasks, "max")

    def remove(self) -> None:
        """The kernel may take a moment to let go of the last process."""
        deadline = time.monotonic() + _REMOVE_WITHIN_S
        for folder in self._files.folders:
            while True:
                try:
                    folder.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    if time.monotonic() > deadline:
                        break  # left empty; the next group of this name takes it over
                    time.sleep(0.01)


def _counter(file: Path, name: str) -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in file.read_text(encoding="ascii").splitlines():
            word, _, number = line.partition(" ")
            if word == name:
                return int(number)
    return 0
