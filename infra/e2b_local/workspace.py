"""The files of one sandbox, handled from outside while hostile code may be moving them.

Nothing here trusts a path twice: the kernel resolves each one below the workspace (openat2) and gives a descriptor, and what
follows is done to that descriptor. Devices and pipes are never read or written, whatever their name.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from infra.e2b_local.kernel_calls import RESOLVE_BENEATH, RESOLVE_IN_ROOT, RESOLVE_NO_MAGICLINKS, openat2
from infra.e2b_local.workspace_paths import HOME, FileFault, fault_of, name_in_workspace

Kind = Literal["file", "dir", "symlink", "other"]
_NEVER_WAIT = os.O_NONBLOCK | os.O_NOCTTY
_MOST_LISTED = 20_000


@dataclass(frozen=True)
class Entry:
    """One file or folder as `lstat` sees it. `size` in bytes, `modified_at` in seconds since 1970."""

    path: str
    kind: Kind
    size: int
    mode: int
    modified_at: float
    target: str | None = None

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class Workspace:
    """All methods take paths as callers name them and raise FileFault. They block: call them in a thread.

    `view` is a folder that holds home/user and nothing else, so that absolute links inside the workspace resolve too;
    `owner` is the user and group that files made here get, None to leave them ours.
    """

    def __init__(self, view: Path, owner: int | None) -> None:
        self._view = view
        self._owner = owner
        self.home = view / HOME.lstrip("/")

    def create(self) -> None:
        self.home.mkdir(parents=True)
        for folder in (self._view, self.home.parent):
            folder.chmod(0o711)
        self.home.chmod(0o700)
        if self._owner is not None:
            os.chown(self.home, self._owner, self._owner)

    def open_to_read(self, path: str) -> int:
        """A descriptor of a regular file."""
        with _told_as(path):
            return _regular(self._open(name_in_workspace(path), os.O_RDONLY | _NEVER_WAIT), path)

    def open_to_write(self, path: str) -> int:
        """A descriptor of a regular file, made with its folders when it is missing; what it holds stays."""
        with _told_as(path):
            name = name_in_workspace(path)
            if not name:
                raise FileFault("refused", f"{path!r} is a folder")
            self._make_folders(name.rpartition("/")[0])
            file = _regular(self._open(name, os.O_WRONLY | os.O_CREAT | _NEVER_WAIT, 0o644), path)
            if self._owner is not None and os.fstat(file).st_uid != self._owner:
                os.fchown(file, self._owner, self._owner)
            return file

    def stat(self, path: str) -> Entry:
        with _told_as(path):
            name = name_in_workspace(path)
            if not name:
                return _entry("", self.home.stat(), None)
            with self._parent_of(name) as (parent, last):
                return _look(parent, last, name)

    def list(self, path: str, depth: int) -> list[Entry]:
        """What is in a folder, sorted by path, down to `depth` folders; links are not followed below it."""
        with _told_as(path):
            found: list[Entry] = []
            waiting = [(name_in_workspace(path), 1)]
            while waiting:
                name, level = waiting.pop()
                with _closing(self._open(name, os.O_RDONLY | os.O_DIRECTORY)) as folder:
                    for last in os.listdir(folder):  # noqa: PTH208 - a descriptor has no Path
                        below = f"{name}/{last}".lstrip("/")
                        with contextlib.suppress(FileNotFoundError):
                            found.append(_look(folder, last, below))
                            if found[-1].kind == "dir" and level < depth:
                                waiting.append((below, level + 1))
                if len(found) > _MOST_LISTED:
                    raise FileFault("refused", f"{path!r} holds over {_MOST_LISTED} entries; list a folder inside it")
            return sorted(found, key=lambda entry: entry.path)

    def make_folder(self, path: str) -> Entry:
        """With the folders above it. FileFault("exists") when it is there already."""
        with _told_as(path):
            if not self._make_folders(name_in_workspace(path)):
                raise FileFault("exists", f"{path!r} is there already")
        return self.stat(path)

    def move(self, source: str, destination: str) -> Entry:
        """A file at the destination is replaced; its folders are made."""
        with _told_as(source), self._parent_of(name_in_workspace(source)) as (old_parent, old), _told_as(destination):
            _look(old_parent, old, old)  # what is missing is the source, not the destination's folder
            name = name_in_workspace(destination)
            self._make_folders(name.rpartition("/")[0])
            with self._parent_of(name) as (new_parent, new):
                os.rename(old, new, src_dir_fd=old_parent, dst_dir_fd=new_parent)
        return self.stat(destination)

    def remove(self, path: str, bin_folder: Path) -> None:
        """A folder goes with all that is in it: it is moved to `bin_folder`, out of sight, and taken apart there."""
        with _told_as(path), self._parent_of(name_in_workspace(path)) as (parent, last):
            try:
                os.unlink(last, dir_fd=parent)
                return
            except OSError as error:
                if error.errno not in (errno.EISDIR, errno.EPERM):
                    raise
            bin_folder.mkdir(exist_ok=True)
            grave = bin_folder / secrets.token_hex(8)
            os.rename(last, grave, src_dir_fd=parent)
            remove_tree(grave)

    def _open(self, name: str, flags: int, mode: int = 0) -> int:
        """OSError(EXDEV) when `name` leads out of the workspace."""
        with _closing(os.open(self.home, os.O_PATH | os.O_CLOEXEC)) as home:
            try:
                return openat2(home, name or ".", flags, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS, mode)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
        return self._open_through_absolute_link(name, flags & ~os.O_CREAT)

    def _open_through_absolute_link(self, name: str, flags: int) -> int:
        """A link to /home/user/… stays inside: with `view` as the root it is found there, and any other link finds nothing."""
        leads_out = OSError(errno.EXDEV, os.strerror(errno.EXDEV), name)
        with _closing(os.open(self._view, os.O_PATH | os.O_CLOEXEC)) as view:
            try:
                found = openat2(view, f"{HOME}/{name}", flags, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS)
            except OSError:
                raise leads_out from None
        if any(os.path.samestat(os.fstat(found), above.stat()) for above in (self._view, self.home.parent)):
            os.close(found)
            raise leads_out
        return found

    @contextlib.contextmanager
    def _parent_of(self, name: str) -> Iterator[tuple[int, str]]:
        """(descriptor of the folder, last name): what is done to a name in a folder never follows it."""
        folder, _, last = name.rpartition("/")
        if not last:
            raise FileFault("refused", "this cannot be done to the workspace itself")
        with _closing(self._open(folder, os.O_PATH | os.O_DIRECTORY)) as parent:
            yield parent, last

    def _make_folders(self, name: str) -> bool:
        """Whether the last one was made now. OSError(ENOTDIR) when a file is in the way."""
        made, so_far = False, ""
        for part in name.split("/") if name else ():
            with _closing(self._open(so_far, os.O_PATH | os.O_DIRECTORY)) as parent:
                made = self._make_folder_in(parent, part)
            so_far = f"{so_far}/{part}".lstrip("/")
        os.close(self._open(name, os.O_PATH | os.O_DIRECTORY))
        return made

    def _make_folder_in(self, parent: int, name: str) -> bool:
        try:
            os.mkdir(name, 0o755, dir_fd=parent)
        except FileExistsError:
            return False
        if self._owner is not None:
            os.chown(name, self._owner, self._owner, dir_fd=parent, follow_symlinks=False)
        return True


def remove_tree(path: Path) -> None:
    """However deep it is and whatever its modes are: `rm` walks by descriptors and follows no link."""
    if not path.exists():
        return
    if os.geteuid() != 0:
        subprocess.run(["chmod", "-R", "u+rwX", "--", path], check=False, capture_output=True)
    subprocess.run(["rm", "-rf", "--one-file-system", "--", path], check=False, capture_output=True)


@contextlib.contextmanager
def _told_as(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise fault_of(error, path) from None


@contextlib.contextmanager
def _closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _regular(file: int, path: str) -> int:
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    raise FileFault("refused", f"{path!r} is not a file that can be read or written")


def _look(parent: int, last: str, name: str) -> Entry:
    found = os.stat(last, dir_fd=parent, follow_symlinks=False)
    target = None
    if stat.S_ISLNK(found.st_mode):
        with contextlib.suppress(OSError):  # it may have been replaced meanwhile
            target = os.readlink(last, dir_fd=parent)
    return _entry(name, found, target)


def _entry(name: str, found: os.stat_result, target: str | None) -> Entry:
    kinds: dict[int, Kind] = {stat.S_IFREG: "file", stat.S_IFDIR: "dir", stat.S_IFLNK: "symlink"}
    kind = kinds.get(stat.S_IFMT(found.st_mode), "other")
    path = f"{HOME}/{name}".rstrip("/")
    return Entry(path, kind, found.st_size, found.st_mode, found.st_mtime, target)
