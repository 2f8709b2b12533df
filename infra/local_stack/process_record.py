"""What is written down about each child, so that the next start can find and end what a killed one left behind."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
from dataclasses import asdict, dataclass
from pathlib import Path

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ProcessRecord:
    """One child. Boot id, pid and start time together name one process for ever; its name or command never do.

    `start_ticks` is field 22 of /proc/<pid>/stat (clock ticks since boot); `end_signal` ends it at once but cleanly.
    """

    name: str
    pid: int
    start_ticks: int
    boot_id: str
    end_signal: int
    ports: dict[str, int]

    @classmethod
    def of(cls, name: str, pid: int, end_signal: int, ports: dict[str, int]) -> ProcessRecord | None:
        """None when the process has ended already."""
        ticks = start_ticks(pid)
        return None if ticks is None else cls(name, pid, ticks, boot_id(), end_signal, ports)

    def write(self, directory: Path) -> None:
        target = directory / f"{self.name}.json"
        draft = target.with_suffix(".draft")
        draft.write_text(json.dumps(asdict(self)), encoding="utf-8")
        draft.replace(target)  # a kill leaves the old record or the new one, never half of one

    def is_alive(self) -> bool:
        return self.boot_id == boot_id() and start_ticks(self.pid) == self.start_ticks


def read_records(directory: Path) -> list[ProcessRecord]:
    """All records of a run directory; what is not one is left alone."""
    records = []
    for path in sorted(directory.glob("*.json")):
        try:
            records.append(ProcessRecord(**json.loads(path.read_text(encoding="utf-8"))))
        except (OSError, ValueError, TypeError):
            continue
    return records


def forget(directory: Path, name: str) -> None:
    (directory / f"{name}.json").unlink(missing_ok=True)


async def end_leftovers(directory: Path, patience_s: float = 3.0) -> list[str]:
    """Ends every recorded process that still is the recorded one and drops the records. Returns the names ended."""
    records = read_records(directory)
    ended = await asyncio.gather(*(_end(record, patience_s) for record in records))
    for record in records:
        forget(directory, record.name)
    return [record.name for record, was_alive in zip(records, ended, strict=True) if was_alive]


async def _end(record: ProcessRecord, patience_s: float) -> bool:
    try:
        handle = os.pidfd_open(record.pid)
    except OSError:
        return False
    try:
        # the handle is pinned to one process, so what is checked now is what gets the signal
        if not record.is_alive():
            return False
        log.warning("ending %s (pid %d), left behind by a killed run", record.name, record.pid)
        for number in (record.end_signal, signal.SIGKILL):
            try:
                signal.pidfd_send_signal(handle, number)
            except ProcessLookupError:
                break
            if await exited(handle, patience_s):
                break
        return True
    finally:
        os.close(handle)


async def exited(handle: int, within_s: float) -> bool:
    """A pidfd becomes readable when its process ends, also for one that is not our child."""
    loop = asyncio.get_running_loop()
    exited = asyncio.Event()
    loop.add_reader(handle, exited.set)
    try:
        await asyncio.wait_for(exited.wait(), within_s)
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(handle)
    return True


def start_ticks(pid: int) -> int | None:
    """When the process began, or None when it is gone or only waits to be reaped."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *rest = stat.rpartition(")")[2].split()  # the command name before it may hold anything
    return None if state in "ZX" else int(rest[18])


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
