"""How much a workspace holds, counted so that a sandbox cannot look smaller than it is."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from infra.e2b_local.kernel_calls import RESOLVE_BENEATH, RESOLVE_NO_MAGICLINKS, openat2

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


@dataclass(frozen=True)
class Usage:
    """`files` counts folders too. `complete` is false when the count stopped: too many files, or folders too deep to name."""

    bytes: int
    files: int
    complete: bool = True


def measure(home: Path, most_files: int) -> Usage:
    """Sparse files count in full, a file with several names once. Stops after `most_files`."""
    total, files, links = 0, 0, set[tuple[int, int]]()
    waiting = [""]
    with contextlib.ExitStack() as stack:
        root = os.open(home, os.O_PATH | os.O_CLOEXEC)
        stack.callback(os.close, root)
        while waiting:
            name = waiting.pop()
            try:
                folder = _open_folder(root, name)
            except OSError as error:
                if error.errno == errno.ENAMETOOLONG:
                    return Usage(total, files, complete=False)
                continue  # removed, or replaced by something else, since it was seen
            with os.scandir(folder) as entries:
                for entry in entries:
                    files += 1
                    if files > most_files:
                        os.close(folder)
                        return Usage(total, files, complete=False)
                    total += _bytes_of(entry, links)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(f"{name}/{entry.name}".lstrip("/"))
            os.close(folder)
    return Usage(total, files)


def unlinked_bytes(home: Path, pids: Iterable[int]) -> int:
    """Bytes of files that have no name any more and are held open: they fill the disk all the same."""
    device, seen, total = home.stat().st_dev, set[int](), 0
    for pid in pids:
        with contextlib.suppress(OSError):  # the process ended
            for held in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    found = held.stat()
                    if stat.S_ISREG(found.st_mode) and not found.st_nlink and found.st_dev == device:
                        total += 0 if found.st_ino in seen else max(found.st_size, found.st_blocks * 512)
                        seen.add(found.st_ino)
    return total


def _open_folder(root: int, name: str) -> int:
    """Also one whose owner has locked us out by its mode: we are that owner, or root."""
    resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS
    try:
        return openat2(root, name or ".", _FOLDER, resolve)
    except PermissionError:
        locked = openat2(root, name or ".", os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, resolve)
        try:
            Path(f"/proc/self/fd/{locked}").chmod(0o700)
        finally:
            os.close(locked)
        return openat2(root, name or ".", _FOLDER, resolve)


def _bytes_of(entry: os.DirEntry[str], links: set[tuple[int, int]]) -> int:
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return 0
    if found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode):
        identity = (found.st_dev, found.st_ino)
        if identity in links:
            return 0
        links.add(identity)
    return max(found.st_size, found.st_blocks * 512)
