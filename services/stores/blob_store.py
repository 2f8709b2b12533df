"""Blobs by key: a local directory, or whatever object store a URL names (S3, GCS, Azure, memory).

A blob is written and synced before the row that names it. Locally that is: a file under another name, fsync, rename,
fsync of the folders. An object store shows an object only when it is whole.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import tempfile
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, ObjectStore, from_url

from schemas.errors import EngineDown, PermanentFailure, TooLarge

KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_=+.-]*(/[A-Za-z0-9][A-Za-z0-9_=+.-]*)+")
PIECE_BYTES = 1 << 20
STAGING = ".staging"


class BlobMissing(PermanentFailure):
    """A row names a blob that is not there."""

    def __init__(self, key: str) -> None:
        super().__init__("corrupt", f"The stored file {key} is missing")
        self.key = key

    def __reduce__(self) -> tuple[type, tuple[str]]:  # type: ignore[override]
        return type(self), (self.key,)


class BlobStore:
    """Keys are `tenant/...`: at least two parts of letters, digits and `_ = + . -`, none beginning with a dot.

    Raises EngineDown("blobs") when the store does not answer, BlobMissing for a key that is not there.
    """

    def __init__(self, store: ObjectStore, directory: Path | None = None) -> None:
        """`directory` is where `store` keeps its files, when it is a local one: writes then go there, synced."""
        self._store = store
        self._directory = directory

    @classmethod
    def at_directory(cls, directory: Path) -> BlobStore:
        (directory / STAGING).mkdir(parents=True, exist_ok=True)
        return cls(LocalStore(directory), directory)

    @classmethod
    def at_url(cls, url: str, timeout_s: float = 30) -> BlobStore:
        """`s3://`, `gs://`, `az://`, `file://`, `memory://`; credentials come from each cloud's own variables."""
        parts = urlsplit(url)
        if parts.scheme == "file":
            return cls.at_directory(Path(unquote(parts.path)))
        timeout = timedelta(seconds=timeout_s)
        return cls(from_url(url, client_options={"timeout": timeout}, retry_config={"max_retries": 0}))

    async def put(self, key: str, data: bytes) -> None:
        """Write or replace; durable when it returns."""
        _check(key)
        async with _named_failures(key):
            if self._directory is None:
                await obstore.put_async(self._store, key, data)
            else:
                await asyncio.to_thread(self._write_file, key, data)

    async def put_stream(self, key: str, pieces: AsyncIterator[bytes], max_bytes: int | None = None) -> tuple[int, str]:
        """Write what comes, never whole in memory; bytes and SHA-256 (hex) of it.

        Raises TooLarge over `max_bytes`. Whatever goes wrong, the key is as it was and nothing is left over: pieces
        are gathered in a file first, and only a whole one is moved or sent on.
        """
        _check(key)
        staging = self._directory / STAGING if self._directory else Path(tempfile.gettempdir())
        path = staging / f"perdure-{uuid.uuid4().hex}"
        try:
            size, sha256 = await _gather(path, pieces, max_bytes)
            async with _named_failures(key):
                if self._directory is None:
                    await obstore.put_async(self._store, key, path)
                else:
                    await asyncio.to_thread(self._move_in, path, key)
        finally:
            path.unlink(missing_ok=True)
        return size, sha256

    async def put_file(self, key: str, path: Path, max_bytes: int | None = None) -> tuple[int, str]:
        """Store a copy of a file as `put_stream` does; its bytes and SHA-256 (hex)."""
        return await self.put_stream(key, _pieces_of(path), max_bytes)

    async def get(self, key: str) -> bytes:
        _check(key)
        async with _named_failures(key):
            return bytes(await (await obstore.get_async(self._store, key)).bytes_async())

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        """The blob in pieces of about a megabyte."""
        _check(key)
        async with _named_failures(key):
            found = await obstore.get_async(self._store, key)
            async for piece in found.stream(min_chunk_size=PIECE_BYTES):
                yield bytes(piece)

    async def get_to_file(self, key: str, path: Path) -> int:
        """Copy the blob into a file; its bytes. A copy that fails leaves no file."""
        size = 0
        try:
            with path.open("wb") as file:
                async for piece in self.stream(key):
                    size += await asyncio.to_thread(file.write, piece)
        except BaseException:
            await asyncio.to_thread(path.unlink, missing_ok=True)
            raise
        return size

    async def exists(self, key: str) -> bool:
        _check(key)
        try:
            async with _named_failures(key):
                await obstore.head_async(self._store, key)
        except BlobMissing:
            return False
        return True

    async def delete(self, key: str) -> None:
        """Gone when it returns; a key that is not there is no error."""
        _check(key)
        try:
            async with _named_failures(key):
                await obstore.delete_async(self._store, key)
        except BlobMissing:
            return

    async def list(self, prefix: str = "") -> AsyncIterator[str]:
        """Keys under a folder (`tenant` or `tenant/documents`), in no promised order."""
        async with _named_failures(prefix):
            async for page in obstore.list(self._store, prefix.rstrip("/") or None):
                for found in page:
                    if not found["path"].startswith(STAGING):
                        yield found["path"]

    async def sweep_staging(self, before: float) -> int:
        """Remove what killed writers left, last touched before this Unix time; how many. Only local stores have any."""
        if self._directory is None:
            return 0
        return await asyncio.to_thread(_sweep, self._directory / STAGING, before)

    # Everything below runs in a thread.

    def _write_file(self, key: str, data: bytes) -> None:
        assert self._directory is not None
        path = self._directory / STAGING / f"perdure-{uuid.uuid4().hex}"
        try:
            with path.open("wb") as file:
                file.write(data)
                _sync(file)
            self._move_in(path, key)
        finally:
            path.unlink(missing_ok=True)

    def _move_in(self, path: Path, key: str) -> None:
        """Rename into place and sync the folder, and the parents of folders that are new."""
        assert self._directory is not None
        target = self._directory / key
        new = [folder for folder in target.parents if not folder.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
        for folder in {target.parent, *(folder.parent for folder in new)}:
            _sync_folder(folder)


async def _gather(path: Path, pieces: AsyncIterator[bytes], max_bytes: int | None) -> tuple[int, str]:
    """Write pieces to a synced file, a megabyte at a time so that small pieces cost no thread each."""
    size, digest, held = 0, hashlib.sha256(), bytearray()

    def flush(file: IO[bytes], last: bool) -> None:
        digest.update(held)
        try:
            file.write(held)
            if last:
                _sync(file)
        except OSError as error:  # a full disk; an OSError of `pieces` is the sender's and not ours to name
            raise EngineDown("blobs", f"The blob store failed: {error}") from error
        held.clear()

    with path.open("wb") as file:
        async for piece in pieces:
            size += len(piece)
            if max_bytes is not None and size > max_bytes:
                raise TooLarge(f"The file is over {max_bytes} bytes, the bound set by PERDURE_LIMITS__UPLOAD_BYTES")
            held += piece
            if len(held) >= PIECE_BYTES:
                await asyncio.to_thread(flush, file, last=False)
        await asyncio.to_thread(flush, file, last=True)
    return size, digest.hexdigest()


async def _pieces_of(path: Path) -> AsyncIterator[bytes]:
    file = await asyncio.to_thread(path.open, "rb")
    with file:
        while piece := await asyncio.to_thread(file.read, PIECE_BYTES):
            yield piece


def _check(key: str) -> None:
    if not KEY.fullmatch(key):
        raise ValueError(f"not a blob key: {key!r}")


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sweep(folder: Path, before: float) -> int:
    old = [path for path in folder.iterdir() if path.stat().st_mtime < before]
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)


@asynccontextmanager
async def _named_failures(key: str) -> AsyncIterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise BlobMissing(key) from error
    except (BaseError, OSError) as error:
        first_line = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise EngineDown("blobs", f"The blob store failed: {first_line}") from error
