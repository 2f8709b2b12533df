"""Which files a command line means, and the name that each will have in its space."""

from __future__ import annotations

import os
import stat
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path

from services.cli.failures import BadUsage


@dataclass(frozen=True)
class LocalFile:
    """A file to send and the document it becomes."""

    path: Path
    external_id: str


@dataclass
class Collection:
    """`skipped` maps a reason to the paths left out for it, so that nothing is left out silently."""

    files: list[LocalFile] = field(default_factory=list)
    skipped: dict[str, list[Path]] = field(default_factory=dict)

    def skip(self, path: Path, reason: str) -> None:
        self.skipped.setdefault(reason, []).append(path)


def collect_files(paths: list[Path], external_id: str | None = None) -> Collection:
    """A file is named by its path as given (its name, when that path is absolute or climbs), a file in a folder by its
    path inside that folder; `/` between the parts, NFC. Two files of one name are refused: one would replace the other.
    """
    found = Collection()
    for path in paths:
        if path.is_dir():
            _walk(path, path, (), found)
        elif path.exists():
            found.files.append(LocalFile(path, _name_as_given(path)))
        else:
            raise BadUsage(f"There is no file or folder {path}.", kind="no_such_file")
    if external_id is not None:
        if len(found.files) != 1:
            raise BadUsage(f"--external-id names one document, and here are {len(found.files)}.")
        found.files = [LocalFile(found.files[0].path, external_id)]
    found.files = _one_of_each(found.files)
    return found


def _walk(folder: Path, root: Path, above: tuple[tuple[int, int], ...], found: Collection) -> None:
    """Depth first, by name. `above` are (device, inode) of the folders it is in: meeting one again is a loop."""
    entry = folder.stat()
    identity = (entry.st_dev, entry.st_ino)
    if identity in above:
        found.skip(folder, "link back to a folder above")
        return
    try:
        members = sorted(folder.iterdir())
    except OSError:
        found.skip(folder, "unreadable folder")
        return
    for path in members:
        if path.name.startswith("."):
            found.skip(path, "hidden")
        elif (reason := _not_a_document(path)) is not None:
            found.skip(path, reason)
        elif path.is_dir():
            _walk(path, root, (*above, identity), found)
        else:
            found.files.append(LocalFile(path, _name(path.relative_to(root))))


def _not_a_document(path: Path) -> str | None:
    try:
        mode = path.stat().st_mode
    except OSError:  # also ELOOP: a link to itself
        return "broken link"
    return None if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else "not a regular file"


def _name_as_given(path: Path) -> str:
    return _name(Path(path.name) if path.is_absolute() or ".." in path.parts else path)


def _name(path: Path) -> str:
    """Bytes that are not UTF-8 in a file name become U+FFFD: the name travels as text."""
    text = os.fsencode(path.as_posix()).decode("utf-8", errors="replace")
    return unicodedata.normalize("NFC", text)


def _one_of_each(files: list[LocalFile]) -> list[LocalFile]:
    named: dict[str, LocalFile] = {}
    for file in files:
        first = named.setdefault(file.external_id, file)
        if first.path.resolve() != file.path.resolve():
            raise BadUsage(
                f"{first.path} and {file.path} would both be the document {file.external_id!r}.",
                "Ingest them one at a time with --external-id, or the folder that holds both.",
            )
    return list(named.values())
