"""Backends that outlived their postmaster, and the pid file it left."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from infra.local_stack.process_record import exited
from schemas.errors import EngineDown


@dataclass(frozen=True)
class PidFile:
    """What `postmaster.pid` says: line 1 is the postmaster, line 7 the key and id of its shared memory segment."""

    postmaster: int | None
    segment: str | None

    @classmethod
    def parse(cls, text: str) -> PidFile:
        lines = [line.strip() for line in text.split("\n")] + [""] * 7
        return cls(int(lines[0]) if lines[0].isdigit() else None, lines[6].split()[-1] if lines[6] else None)


async def clear(data: Path) -> None:
    """Makes way for a new postmaster on this data directory, which the caller has to itself.

    A backend in the middle of a long query notices only later that its postmaster was killed, and until then no new one
    can start. Ours are those that work in this directory and have mapped the shared memory segment recorded there.
    Raises EngineDown when one does not end, or when a whole server that we did not start runs on the directory.
    """
    path = data / "postmaster.pid"
    try:
        left = PidFile.parse(path.read_text(encoding="utf-8", errors="replace"))
    except FileNotFoundError:
        return
    if left.postmaster and _works_in(left.postmaster, data):
        raise EngineDown("postgres", f"process {left.postmaster} runs on {data} and is not ours; stop it first")
    if left.segment is not None:
        numbers = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]  # noqa: PTH208 - names are enough
        orphans = [pid for pid in numbers if _works_in(pid, data) and _has_mapped(pid, left.segment)]
        await asyncio.gather(*(_end(pid, data) for pid in orphans))
    path.unlink()


def _works_in(pid: int, data: Path) -> bool:
    try:
        return os.path.samefile(f"/proc/{pid}/cwd", data)  # noqa: PTH121 - follows the kernel's link
    except OSError:
        return False


def _has_mapped(pid: int, segment: str) -> bool:
    """System V segments show in a process's maps with their id in the place of the inode."""
    try:
        maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return any("/SYSV" in line and line.split()[4] == segment for line in maps.splitlines())


async def _end(pid: int, data: Path) -> None:
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if _works_in(pid, data):  # looked at again through a handle that cannot pass to another process
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            if not await exited(handle, 3):
                raise EngineDown("postgres", f"process {pid} of an earlier server on {data} does not end")
    except ProcessLookupError:
        return
    finally:
        os.close(handle)
