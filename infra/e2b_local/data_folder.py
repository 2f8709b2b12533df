"""What the server keeps on disk, and the lock that makes it the only server there.

    lock, api-key           ours alone
    snapshots/ID.tar.gz     workspaces of paused sandboxes
    open/system/            files that every sandbox sees: /etc and the program of its first process
    open/sandboxes/ID/      record.json; view/home/user, the workspace while it runs; bin, what is being removed

The folder itself is private. `open` may be passed through by the users that sandboxes run as, once they are shown it.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from pathlib import Path
from typing import IO

from infra.e2b_local import cell_init
from infra.e2b_local.workspace_paths import HOME
from schemas.errors import PerdureError

SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""What every sandbox sees of this machine's programs, read-only. `/etc` is its own."""

INIT_FILE = "init.py"
USER_ID = 1_000
_ETC = {
    "passwd": f"root:x:0:0:root:/root:/bin/sh\nuser:x:{USER_ID}:{USER_ID}:user:{HOME}:/bin/bash\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
    "group": f"root:x:0:\nuser:x:{USER_ID}:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "profile": "# read by every command: a pipeline fails when any part of it does\nset -o pipefail\n",
}
_FROM_THIS_MACHINE = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d")


class DataFolderUnusable(PerdureError):
    """The folder cannot be used, or another server uses it."""


class DataFolder:
    """The layout above. `hold` before anything else."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().absolute()
        self.snapshots = self.path / "snapshots"
        self.open = self.path / "open"
        self.system = self.open / "system"
        self.sandboxes = self.open / "sandboxes"
        self._lock: IO[str] | None = None

    def hold(self) -> None:
        """Makes the layout and takes the lock for the life of this process."""
        inside = next((each for each in SYSTEM_FOLDERS if self.path.resolve().is_relative_to(each)), None)
        if inside is not None:
            raise DataFolderUnusable(
                f"{self.path} lies in {inside}, which every sandbox sees; choose another --data-dir"
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.path.chmod(0o700)
            self._lock = (self.path / "lock").open("a", encoding="utf-8")
        except OSError as error:
            raise DataFolderUnusable(f"{self.path}: {error.strerror}; choose another --data-dir") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataFolderUnusable(f"{self.path} is used by another sandbox server") from None
        for folder, mode in ((self.snapshots, 0o700), (self.open, 0o711), (self.sandboxes, 0o711)):
            folder.mkdir(exist_ok=True)
            folder.chmod(mode)
        self._write_system()

    def api_key(self, file: Path | None) -> tuple[str, Path]:
        """(key, where it stands). One is made when the file is missing; its form is that of E2B's keys."""
        file = file or self.path / "api-key"
        if not file.exists():
            opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(opened, "w", encoding="utf-8") as writing:
                writing.write(f"e2b_{secrets.token_hex(20)}\n")
        key = file.read_text(encoding="utf-8").strip()
        if not key:
            raise DataFolderUnusable(f"{file} holds no API key")
        return key, file

    def sandbox(self, sandbox_id: str) -> Path:
        return self.sandboxes / sandbox_id

    def snapshot(self, sandbox_id: str) -> Path:
        return self.snapshots / f"{sandbox_id}.tar.gz"

    def _write_system(self) -> None:
        """Anew at each start: they belong to this version of the server."""
        shutil.rmtree(self.system, ignore_errors=True)
        etc = self.system / "etc"
        etc.mkdir(parents=True)
        for name, text in _ETC.items():
            (etc / name).write_text(text, encoding="utf-8")
        for source in shown_of_etc():
            mount_point = etc / source.name
            mount_point.mkdir() if source.is_dir() else mount_point.touch()
        shutil.copyfile(cell_init.__file__, self.system / INIT_FILE)
        for path in (self.system, *self.system.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)


def shown_of_etc() -> list[Path]:
    """What programs need of this machine's /etc: where libraries and alternatives are. No names, no keys, no addresses."""
    return [path for name in _FROM_THIS_MACHINE if (path := Path("/etc") / name).exists()]
