"""A short directory for a Unix socket: its whole path may have 107 bytes, and a data directory may be longer."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path

SOCKET_PATH_BYTES = 107
LONGEST_SOCKET_NAME = ".s.PGSQL.5432.lock"


def make_socket_dir(data_dir: Path, owner: int, places: Sequence[Path]) -> Path:
    """A directory only this user (or `owner`, whom root starts Postgres as) can enter; always the same for a data dir.

    Raises OSError when none of the places will do.
    """
    name = f"perdure-{hashlib.sha256(os.fsencode(data_dir.resolve())).hexdigest()[:16]}"
    for parent in places:
        candidate = parent / name
        if len(os.fsencode(candidate / LONGEST_SOCKET_NAME)) > SOCKET_PATH_BYTES:
            continue
        try:
            candidate.mkdir(mode=0o700, exist_ok=True)
            if _belongs_to(candidate, {os.geteuid(), owner}):
                candidate.chmod(0o700)
                return candidate
        except OSError:
            continue
    raise OSError("no short private directory for the Postgres socket; set XDG_RUNTIME_DIR to one")


def remove_sockets(directory: Path) -> None:
    """Removes the sockets and lock files of a server that is gone."""
    for path in directory.glob(".s.PGSQL.*"):
        path.unlink(missing_ok=True)


def remove_socket_dir(directory: Path) -> None:
    remove_sockets(directory)
    with contextlib.suppress(OSError):  # somebody else's file in it is theirs to remove
        directory.rmdir()


def usual_places() -> list[Path]:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return [Path(place) for place in (runtime, tempfile.gettempdir(), "/tmp", "/var/tmp") if place]  # noqa: S108


def _belongs_to(directory: Path, owners: set[int]) -> bool:
    """Not a link, and not made before us by somebody else: /tmp is everybody's."""
    found = directory.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid in owners
