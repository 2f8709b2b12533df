"""The directory in which one `perdure up` keeps everything, and the lock that makes it the only one there."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import IO

from schemas.errors import PerdureError

PARTS = ("postgres", "temporal", "qdrant", "tantivy", "blobs", "keys", "logs", "run")
LOG_KEPT_BYTES = 10_000_000


@dataclass(frozen=True)
class Holder:
    """Who holds a data directory. `url` is None until its API listens; `since` is ISO 8601 with zone."""

    pid: int
    since: str
    url: str | None


class DataDirHeld(PerdureError):
    """Another process works in this data directory."""

    exit_code = 75  # EX_TEMPFAIL: it may be free later

    def __init__(self, path: Path, holder: Holder | None) -> None:
        who = "another process"
        if holder is not None:
            who = f"process {holder.pid} ({holder.url or 'still starting'}, since {holder.since})"
        super().__init__(f"{path} is held by {who}; stop that one or choose another --data-dir")
        self.path = path
        self.holder = holder


class DataDirUnusable(PerdureError):
    """The data directory cannot be made, read or written by this user."""


class DataDir:
    """Layout of the data directory. Everything in it is readable by its owner only: it holds keys and people's text."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().absolute()
        self.postgres = self.path / "postgres"
        self.temporal = self.path / "temporal"
        self.qdrant = self.path / "qdrant"
        self.tantivy = self.path / "tantivy"
        self.blobs = self.path / "blobs"
        self.keys = self.path / "keys"
        self.logs = self.path / "logs"
        self.run = self.path / "run"
        self._lock: IO[str] | None = None

    def hold(self, now: datetime) -> None:
        """Makes the layout and takes the lock for the life of this process, or says who has it.

        The lock is a flock: the kernel drops it however the holder dies. It is not inherited through exec.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = (self.path / "lock").open("a+", encoding="utf-8")
        except OSError as error:
            raise DataDirUnusable(
                f"{self.path}: {error.strerror}; choose a --data-dir that you can write to"
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise DataDirHeld(self.path, read_holder(self.path)) from None
        self._lock = lock
        self._make_parts()
        self._write_holder(Holder(os.getpid(), now.isoformat(timespec="seconds"), None))

    def announce(self, url: str) -> None:
        """Records where the API of the holder listens, for `up` and for the CLI's `--data-dir`."""
        holder = read_holder(self.path)
        if self._lock is None or holder is None:
            raise DataDirUnusable(f"{self.path} is not held by this process")
        self._write_holder(Holder(holder.pid, holder.since, url))

    def release(self) -> None:
        if self._lock is not None:
            self._lock.truncate(0)
            self._lock.close()
            self._lock = None

    def open_log(self, name: str) -> IO[bytes]:
        """The log of one engine, appended to; one that has grown over 10 MB is put aside as `<name>.log.1`."""
        path = self.logs / f"{name}.log"
        if path.exists() and path.stat().st_size > LOG_KEPT_BYTES:
            path.replace(self.logs / f"{name}.log.1")
        return path.open("ab")

    def complaint(self, name: str, since_byte: int = 0) -> str:
        """The line of an engine's log that best says why it ended: the last fatal one, or else the last."""
        path = self.logs / f"{name}.log"
        if not path.exists():
            return "no log"
        with path.open("rb") as log:
            log.seek(max(since_byte, path.stat().st_size - 8_000))
            lines = [line.strip() for line in log.read().decode("utf-8", "replace").split("\n") if line.strip()]
        fatal = [line for line in lines if "FATAL" in line or "PANIC" in line or "rror:" in line]
        return (fatal or lines or ["empty log"])[-1]

    def _make_parts(self) -> None:
        try:
            for part in PARTS:
                (self.path / part).mkdir(exist_ok=True, mode=0o700)
        except OSError as error:
            raise DataDirUnusable(f"{error.filename}: {error.strerror}; make it writable for this user") from error

    def _write_holder(self, holder: Holder) -> None:
        assert self._lock is not None
        self._lock.truncate(0)
        self._lock.write(json.dumps(asdict(holder)))
        self._lock.flush()


def read_holder(path: Path) -> Holder | None:
    """What the lock file says; only the lock itself tells whether that process still holds it."""
    try:
        return Holder(**json.loads((path / "lock").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
