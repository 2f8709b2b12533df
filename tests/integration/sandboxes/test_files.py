"""Files through the unmodified SDK."""

from __future__ import annotations

import io
import random

import pytest
from e2b import AsyncSandbox
from e2b.exceptions import FileNotFoundException
from e2b.sandbox.filesystem.filesystem import FileType

from tests.integration.sandboxes.endpoint import HOME

BINARY = random.Random(7).randbytes(3_000_000)


@pytest.mark.parametrize(("octets", "packed"), [(False, False), (True, False), (True, True)])
async def test_a_file_comes_back_byte_for_byte(sandbox: AsyncSandbox, octets: bool, packed: bool) -> None:
    written = await sandbox.files.write("deep/er/data.bin", BINARY, use_octet_stream=octets, gzip=packed)
    assert written.path == f"{HOME}/deep/er/data.bin"
    assert bytes(await sandbox.files.read("deep/er/data.bin", format="bytes")) == BINARY
    count = await sandbox.commands.run("wc -c < deep/er/data.bin; stat -c %U deep/er/data.bin deep")
    assert count.stdout.split() == [str(len(BINARY)), "user", "user"]


async def test_a_stream_and_several_files_can_be_written_at_once(sandbox: AsyncSandbox) -> None:
    await sandbox.files.write("streamed", io.BytesIO(BINARY))
    async with await sandbox.files.read("streamed", format="stream") as stream:
        assert b"".join([piece async for piece in stream]) == BINARY
    await sandbox.files.write_files([{"path": "a/1", "data": "one"}, {"path": f"{HOME}/b/2", "data": b"two"}])
    assert (await sandbox.commands.run("cat a/1 b/2")).stdout == "onetwo"


async def test_a_file_that_was_longer_is_replaced_whole(sandbox: AsyncSandbox) -> None:
    await sandbox.files.write("note", "a long text")
    await sandbox.files.write("note", "short")
    assert await sandbox.files.read("note") == "short"


async def test_folders_are_listed_to_the_depth_asked_for(sandbox: AsyncSandbox) -> None:
    await sandbox.commands.run("mkdir -p top/inner; echo 123 > top/f; echo 1 > top/inner/g; ln -s f top/link")
    shallow = await sandbox.files.list("top")
    assert [(entry.name, entry.type) for entry in shallow] == [
        ("f", FileType.FILE),
        ("inner", FileType.DIR),
        ("link", FileType.SYMLINK),
    ]
    assert (shallow[0].size, shallow[0].permissions, shallow[2].symlink_target) == (4, "-rw-r--r--", "f")
    assert f"{HOME}/top/inner/g" in [entry.path for entry in await sandbox.files.list("top", depth=2)]


async def test_files_and_folders_are_made_moved_and_removed(sandbox: AsyncSandbox) -> None:
    assert await sandbox.files.make_dir("x/y")
    assert not await sandbox.files.make_dir("x/y")
    await sandbox.files.write("x/y/f", "text")
    assert (await sandbox.files.rename("x/y/f", "x/g")).path == f"{HOME}/x/g"
    assert await sandbox.files.exists("x/g")
    assert not await sandbox.files.exists("x/y/f")
    assert (await sandbox.files.get_info("x/g")).size == 4
    await sandbox.files.remove("x")
    assert not await sandbox.files.exists("x")
    assert (await sandbox.commands.run("ls -A | grep -v '^[.]' || true")).stdout == ""


async def test_what_is_missing_is_told_as_missing(sandbox: AsyncSandbox) -> None:
    with pytest.raises(FileNotFoundException):
        await sandbox.files.read("nothing")
    with pytest.raises(FileNotFoundException):
        await sandbox.files.list("nothing")
    with pytest.raises(FileNotFoundException):
        await sandbox.files.rename("nothing", "other")


async def test_a_link_inside_the_workspace_is_followed_even_when_it_is_absolute(sandbox: AsyncSandbox) -> None:
    await sandbox.commands.run(f"mkdir d; echo text > d/f; ln -s d/f near; ln -s {HOME}/d/f far; ln -s {HOME}/d dir")
    assert [await sandbox.files.read(name) for name in ("near", "far", "dir/f")] == ["text\n"] * 3
