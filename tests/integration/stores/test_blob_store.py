"""The blob store on a directory, in memory, and behind URLs."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from schemas.errors import EngineDown, TooLarge
from services.stores.blob_store import PIECE_BYTES, STAGING, BlobMissing, BlobStore

TEXT = "年假 \x00 ok".encode()


@pytest.fixture(params=["directory", "file_url", "memory"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> BlobStore:
    match request.param:
        case "directory":
            return BlobStore.at_directory(tmp_path / "blobs")
        case "file_url":
            return BlobStore.at_url((tmp_path / "with space").as_uri())
        case _:
            return BlobStore.at_url("memory:///")


async def pieces_of(data: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def keys(blobs: BlobStore, prefix: str = "") -> list[str]:
    return sorted([key async for key in blobs.list(prefix)])


def files_under(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("data", [b"", TEXT, os.urandom(3 * PIECE_BYTES + 1)], ids=["empty", "text", "large"])
async def test_what_was_put_is_read_back_whole_in_pieces_and_into_a_file(
    blobs: BlobStore, data: bytes, tmp_path: Path
) -> None:
    await blobs.put("t/docs/one", data)
    assert await blobs.get("t/docs/one") == data
    assert b"".join([piece async for piece in blobs.stream("t/docs/one")]) == data
    assert await blobs.get_to_file("t/docs/one", tmp_path / "copy") == len(data)
    assert (tmp_path / "copy").read_bytes() == data


async def test_a_key_put_again_has_the_new_bytes(blobs: BlobStore) -> None:
    await blobs.put("t/a", b"old, and longer")
    await blobs.put("t/a", b"new")
    assert await blobs.get("t/a") == b"new"


async def test_a_stream_is_stored_with_its_size_and_hash(blobs: BlobStore) -> None:
    data = os.urandom(2 * PIECE_BYTES + 77)
    size, sha256 = await blobs.put_stream("t/up/load", pieces_of(data, 65_536), max_bytes=len(data))
    assert (size, sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert await blobs.get("t/up/load") == data
    assert await blobs.put_stream("t/empty", pieces_of(b"", 1)) == (0, hashlib.sha256(b"").hexdigest())
    assert await blobs.get("t/empty") == b""


async def test_a_file_is_stored_as_a_copy(blobs: BlobStore, tmp_path: Path) -> None:
    data = os.urandom(PIECE_BYTES + 5)
    (tmp_path / "member").write_bytes(data)
    assert await blobs.put_file("t/member", tmp_path / "member") == (len(data), hashlib.sha256(data).hexdigest())
    assert await blobs.get("t/member") == data
    assert (tmp_path / "member").read_bytes() == data


async def test_a_stream_over_the_bound_is_refused_by_the_name_of_its_setting_and_leaves_nothing(
    blobs: BlobStore, tmp_path: Path
) -> None:
    await blobs.put("t/a", b"before")
    with pytest.raises(TooLarge, match="PERDURE_LIMITS__UPLOAD_BYTES"):
        await blobs.put_stream("t/a", pieces_of(os.urandom(3 * PIECE_BYTES), 1_000), max_bytes=2 * PIECE_BYTES)
    assert await blobs.get("t/a") == b"before"
    assert [name for name in files_under(tmp_path) if STAGING in name] == []


async def test_a_stream_stops_being_read_at_the_bound(blobs: BlobStore) -> None:
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += 1
            yield b"x" * 100

    with pytest.raises(TooLarge):
        await blobs.put_stream("t/a", endless(), max_bytes=1_000)
    assert read == 11


async def test_a_sender_that_breaks_off_or_is_cancelled_leaves_nothing(blobs: BlobStore, tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"x" * (PIECE_BYTES + 1)
        raise ConnectionResetError("sender has gone")

    with pytest.raises(ConnectionResetError):
        await blobs.put_stream("t/a", broken())

    waiting = asyncio.Event()

    async def stalled() -> AsyncIterator[bytes]:
        yield b"x" * (PIECE_BYTES + 1)
        waiting.set()
        await asyncio.Event().wait()

    upload = asyncio.create_task(blobs.put_stream("t/a", stalled()))
    await waiting.wait()
    upload.cancel()
    with pytest.raises(asyncio.CancelledError):
        await upload
    assert not await blobs.exists("t/a")
    assert files_under(tmp_path) == []


async def test_a_missing_blob_is_named_and_leaves_no_file(blobs: BlobStore, tmp_path: Path) -> None:
    with pytest.raises(BlobMissing, match="t/none"):
        await blobs.get("t/none")
    with pytest.raises(BlobMissing):
        await blobs.get_to_file("t/none", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


async def test_deleting_is_done_once_and_asking_again_is_no_error(blobs: BlobStore) -> None:
    await blobs.put("t/a", b"1")
    assert await blobs.exists("t/a")
    await blobs.delete("t/a")
    await blobs.delete("t/a")
    assert not await blobs.exists("t/a")


async def test_listing_takes_whole_folders_and_never_a_neighbour_with_a_longer_name(blobs: BlobStore) -> None:
    for key in ("t/a", "t/docs/1", "t/docs/2", "t/docs2/3", "tt/a"):
        await blobs.put(key, b"1")
    await blobs.put_stream("t/docs/4", pieces_of(b"1", 1))
    assert await keys(blobs) == ["t/a", "t/docs/1", "t/docs/2", "t/docs/4", "t/docs2/3", "tt/a"]
    assert await keys(blobs, "t/") == ["t/a", "t/docs/1", "t/docs/2", "t/docs/4", "t/docs2/3"]
    assert await keys(blobs, "t/docs") == ["t/docs/1", "t/docs/2", "t/docs/4"]
    assert await keys(blobs, "none") == []


BAD_KEYS = [
    "",
    "a",
    "/a/b",
    "a/../b",
    "a//b",
    "a/b/",
    "../x/y",
    ".staging/x",
    "a/.b",
    "a/b c",
    "a/b\n",
    "a/年",
    "a/%2e",
]


@pytest.mark.parametrize("key", BAD_KEYS)
async def test_a_key_that_could_leave_its_tenants_folder_is_refused_by_every_call(blobs: BlobStore, key: str) -> None:
    for call in (blobs.put(key, b"1"), blobs.get(key), blobs.delete(key), blobs.exists(key)):
        with pytest.raises(ValueError, match="not a blob key"):
            await call
    with pytest.raises(ValueError, match="not a blob key"):
        await blobs.put_stream(key, pieces_of(b"1", 1))


async def test_a_store_that_does_not_answer_is_named_as_down(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "y")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    blobs = BlobStore.at_url("s3://bucket/prefix")
    with pytest.raises(EngineDown) as down:
        await blobs.put("t/a", b"1")
    assert down.value.engine == "blobs"


async def test_a_full_or_forbidden_disk_is_named_as_down(tmp_path: Path) -> None:
    blobs = BlobStore.at_directory(tmp_path)
    (tmp_path / "t").write_bytes(b"a file where a folder must be")
    with pytest.raises(EngineDown, match="blob store failed"):
        await blobs.put("t/a", b"1")
    assert files_under(tmp_path) == ["t"]


WRITER = """
import asyncio, sys
from pathlib import Path
from services.stores.blob_store import BlobStore

async def main():
    blobs = BlobStore.at_directory(Path(sys.argv[1]))
    number = 0
    while True:
        data = str(number).encode() * 50_000
        await blobs.put(f"t/{number}", data)
        print(number, flush=True)
        number += 1

asyncio.run(main())
"""


async def test_a_writer_killed_at_any_moment_leaves_whole_blobs_only_and_its_debris_is_swept(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    last = [int(child.stdout.readline()) for _ in range(20)][-1]
    child.send_signal(signal.SIGKILL)
    child.communicate()
    (tmp_path / STAGING / "perdure-left").write_bytes(b"half")
    os.utime(tmp_path / STAGING / "perdure-left", (1_000, 1_000))
    blobs = BlobStore.at_directory(tmp_path)
    found = await keys(blobs)
    assert {f"t/{number}" for number in range(last + 1)} <= set(found)
    for key in found:
        assert await blobs.get(key) == key.removeprefix("t/").encode() * 50_000
    assert await blobs.sweep_staging(before=2_000) == 1
    assert not (tmp_path / STAGING / "perdure-left").exists()


async def test_a_local_blob_and_its_folders_are_synced_before_the_write_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    really = os.fsync

    def watched(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        really(descriptor)

    blobs = BlobStore.at_directory(tmp_path)
    monkeypatch.setattr(os, "fsync", watched)
    await blobs.put("t/docs/one", b"1")
    assert Path(synced[0]).parent == tmp_path / STAGING, "the bytes, before the name"
    assert set(synced[1:]) == {str(tmp_path), str(tmp_path / "t"), str(tmp_path / "t" / "docs")}
