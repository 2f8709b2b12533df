"""Zip archives whose whole inflated size is bounded: one budget a file, counted while inflating, not as declared."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from schemas.errors import PermanentFailure
from schemas.settings import ParsingSettings
from services.documents.bounds import bound_reached

_PIECE_BYTES = 1 << 18
_RATIO_FREE_BYTES = 20_000_000
"""Ratios say nothing about small archives."""


class BoundedZip:
    """Reads parts of an archive against the limits of entries, inflated bytes and ratio.

    Raises PermanentFailure: corrupt, encrypted, too_many or too_large.
    """

    def __init__(self, path: Path, limits: ParsingSettings, entries: int | None = None) -> None:
        try:
            self._archive = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise PermanentFailure("corrupt", f"the archive cannot be opened: {error}") from error
        self._limits = limits
        self._packed_bytes = max(path.stat().st_size, 1)
        self._inflated_bytes = 0
        self.infos = self._archive.infolist()
        if entries is not None and len(self.infos) > entries:
            raise bound_reached("too_many", f"{len(self.infos)} entries", "archive_members", entries)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._archive.close()

    def __contains__(self, name: str) -> bool:
        return name in self._archive.NameToInfo

    @property
    def names(self) -> list[str]:
        return [info.filename for info in self.infos]

    def pieces(self, part: str | zipfile.ZipInfo) -> Iterator[bytes]:
        """The inflated bytes of a part, piece by piece."""
        info = self._archive.NameToInfo.get(part) if isinstance(part, str) else part
        if info is None:
            raise PermanentFailure("corrupt", f"the part {part} is missing")
        if info.flag_bits & 0x1:
            raise PermanentFailure("encrypted", "the archive is protected by a password")
        try:
            with self._archive.open(info) as stream:
                while piece := stream.read(_PIECE_BYTES):
                    self._count(len(piece))
                    yield piece
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError) as error:
            raise PermanentFailure("corrupt", f"the part {info.filename!r} cannot be inflated: {error}") from error

    def read(self, part: str | zipfile.ZipInfo) -> bytes:
        """A whole part in memory."""
        return b"".join(self.pieces(part))

    def _count(self, count: int) -> None:
        self._inflated_bytes += count
        limits = self._limits
        if self._inflated_bytes > limits.archive_bytes:
            raise bound_reached("too_large", "the inflated archive is too large", "archive_bytes", limits.archive_bytes)
        ratio = self._inflated_bytes / self._packed_bytes
        if self._inflated_bytes > _RATIO_FREE_BYTES and ratio > limits.archive_ratio:
            raise bound_reached("too_large", "the archive inflates suspiciously", "archive_ratio", limits.archive_ratio)
