"""Backends that outlived their postmaster, and the pid file it left."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from schemas.errors import EngineDown

SHARED_MEMORY_LINE = 6  # of postmaster.pid: "<key> <id>"


def clear(data: Path) -> None:
    """Makes way for a new postmaster on this data directory, which the caller has to itself.

    A backend in the middle of a long query notices only later that its postmaster was killed, and until then no new one
    can start. Ours are those that work in this directory and have mapped the shared memory segment recorded there.
    Raises EngineDown when a whole server that we did not start runs on the directory.
    """
    pid_file = data / "postmaster.pid"
    try:
        lines = pid_file.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        return
    segment = (
        lines[SHARED_MEMORY_LINE].split()[-1]
        if len(lines) > SHARED_MEMORY_LINE and lines[SHARED_MEMORY_LINE].strip()
        else ""
    )
    postmaster = int(lines[0]) if lines[0].strip().isdigit() else 0
    if postmaster and _works_in(postmaster, data):
        raise EngineDown("postgres", f"process {postmaster} runs on {data} and is not ours; stop it first")
    for pid in (int(entry) for entry in os.listdir("/proc") if entry.isdigit()):  # noqa: PTH208 - names are enough
        if segment and _works_in(pid, data) and _has_mapped(pid, segment):
            _kill(pid, data)
    pid_file.unlink()


def _works_in(pid: int, data: Path) -> bool:
    try:
        return os.path.samefile(f"/proc/{pid}/cwd", data)  # noqa: PTH121 - follows the kernel's link
    except OSError:
        return False


def _has_mapped(pid: int, segment: str) -> bool:
    try:
        maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return any("/SYSV" in line and line.split()[4] == segment for line in maps.splitlines())


def _kill(pid: int, data: Path) -> None:
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if _works_in(pid, data):  # looked at again through a handle that cannot pass to another process
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)
