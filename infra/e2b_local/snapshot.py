"""A workspace as one compressed file, and back. Only while none of its processes is alive."""

from __future__ import annotations

import errno
import os
import stat
import tarfile
import zlib
from pathlib import Path

BROKEN = (OSError, EOFError, tarfile.TarError, zlib.error)
_FAST = 1
"""Level of gzip: a pause is waited for, and most of what is packed is text or already compressed."""


def pack(home: Path, snapshot: Path) -> None:
    """Writes `snapshot` whole or not at all.

    Files, folders and links are kept with their modes and times. Sockets and pipes are not, nor what is nested deeper than
    the kernel can name.
    """
    draft = snapshot.with_suffix(".draft")
    try:
        with draft.open("wb") as raw:
            with tarfile.open(fileobj=raw, mode="w:gz", compresslevel=_FAST, format=tarfile.PAX_FORMAT) as archive:
                _add_folder(archive, home, "")
            raw.flush()
            os.fsync(raw.fileno())
        draft.replace(snapshot)
    finally:
        draft.unlink(missing_ok=True)


def unpack(snapshot: Path, home: Path, owner: int | None) -> None:
    """Fills the empty folder `home`. What is made belongs to `owner`, or to us when that is None. Raises one of BROKEN."""
    folders: list[tuple[Path, tarfile.TarInfo]] = []
    with tarfile.open(snapshot, "r:gz") as archive:
        for member in archive:
            target = home / member.name
            _make(archive, member, target, home)
            if owner is not None:
                os.chown(target, owner, owner, follow_symlinks=False)
            if member.isdir():
                folders.append((target, member))
            elif not member.issym():
                _restore(target, member)
    for target, member in reversed(folders):  # the inner ones first: making them changed the times of the outer ones
        _restore(target, member)


def _add_folder(archive: tarfile.TarFile, folder: Path, name: str) -> None:
    """Top down without recursion: a workspace may be nested deeper than Python's stack."""
    waiting = [(folder, name)]
    while waiting:
        folder, name = waiting.pop()
        if not os.access(folder, os.R_OK | os.X_OK):
            folder.chmod(0o700)
        for entry in sorted(os.scandir(folder), key=lambda each: each.name):
            path, inside = Path(entry.path), f"{name}/{entry.name}".lstrip("/")
            try:
                is_folder = _add(archive, path, inside)
            except OSError as error:
                if error.errno != errno.ENAMETOOLONG:
                    raise
                continue
            if is_folder:
                waiting.append((path, inside))


def _add(archive: tarfile.TarFile, path: Path, name: str) -> bool:
    """Whether it is a folder whose contents are to follow."""
    info = archive.gettarinfo(path, name)
    if info is None or info.type not in (tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE):
        return False
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    if not info.isreg():
        archive.addfile(info)
        return info.isdir()
    if not os.access(path, os.R_OK):
        path.chmod(info.mode | stat.S_IRUSR)
    with path.open("rb") as content:
        archive.addfile(info, content)
    return False


def _make(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path, home: Path) -> None:
    if member.isdir():
        target.mkdir()
    elif member.issym():
        target.symlink_to(member.linkname)
    elif member.islnk():
        target.hardlink_to(home / member.linkname)
    else:
        content = archive.extractfile(member)
        assert content is not None, "only files, folders and links are packed"
        with target.open("xb") as file:
            while piece := content.read(1 << 20):
                file.write(piece)


def _restore(target: Path, member: tarfile.TarInfo) -> None:
    target.chmod(member.mode & 0o777)
    os.utime(target, (member.mtime, member.mtime))
