"""Paths by which the file service could be led out of a workspace."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest
from e2b import AsyncSandbox
from e2b.exceptions import InvalidArgumentException

from tests.integration.sandboxes.endpoint import HOME, local_only
from tests.integration.sandboxes.server_process import SandboxServer

pytestmark = local_only

Act = Callable[[AsyncSandbox, str], Awaitable[object]]
ACTS: dict[str, Act] = {
    "read": lambda sandbox, path: sandbox.files.read(path),
    "write": lambda sandbox, path: sandbox.files.write(path, "text"),
    "write octets": lambda sandbox, path: sandbox.files.write(path, "text", use_octet_stream=True),
    "list": lambda sandbox, path: sandbox.files.list(path),
    "make_dir": lambda sandbox, path: sandbox.files.make_dir(f"{path}/new"),
    "remove": lambda sandbox, path: sandbox.files.remove(f"{path}/x"),
    "rename from": lambda sandbox, path: sandbox.files.rename(f"{path}/x", "here"),
    "rename to": lambda sandbox, path: sandbox.files.rename("own", f"{path}/x"),
    "info": lambda sandbox, path: sandbox.files.get_info(f"{path}/x"),
    "exists": lambda sandbox, path: sandbox.files.exists(f"{path}/x"),
}


OUTSIDE = ("/etc/passwd", "../../etc/passwd", f"{HOME}/../../etc", "a/../../b", f"{HOME}2", "//etc", "~/../x", "..")
LINKS = ("/etc", "/", "/home", "/proc/self/root", "../../../etc", "/proc/self/cwd")


async def test_a_path_outside_is_refused_by_every_operation(sandbox: AsyncSandbox) -> None:
    await sandbox.files.write("own", "text")
    for act, path in itertools.product(ACTS.values(), OUTSIDE):
        with pytest.raises(InvalidArgumentException, match=r"outside the workspace|cannot go up"):
            await act(sandbox, path)


async def test_a_link_that_leads_out_is_followed_by_no_operation(sandbox: AsyncSandbox) -> None:
    await sandbox.files.write("own", "text")
    for target in LINKS:
        await sandbox.commands.run(f"ln -sfn {target} link")
        for act in ACTS.values():
            with pytest.raises(InvalidArgumentException, match="leads out of the workspace"):
                await act(sandbox, "link")


async def test_a_link_to_a_file_of_the_machine_is_not_followed(sandbox: AsyncSandbox, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of the host")
    await sandbox.commands.run(f"ln -s {tmp_path}/secret link; ln -s {tmp_path} folder")
    for path in ("link", "folder/secret"):
        with pytest.raises(InvalidArgumentException, match="leads out"):
            await sandbox.files.read(path)
        with pytest.raises(InvalidArgumentException, match="leads out"):
            await sandbox.files.write(path, "overwritten")
    with pytest.raises(InvalidArgumentException, match="leads out"):
        await sandbox.files.write("folder/new", "made")
    await sandbox.files.remove("link")
    await sandbox.files.remove("folder")
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]
    assert (tmp_path / "secret").read_text() == "of the host"


SWAP = """
import os, sys
os.mkdir("real")
open("real/secret", "w").write("own")
while True:
    for target in (sys.argv[1], "real"):
        os.symlink(target, "new")
        os.replace("new", "d")
"""


async def test_a_link_that_is_swapped_meanwhile_gains_nothing(sandbox: AsyncSandbox, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of the host")
    await sandbox.files.write("swap.py", SWAP)
    swapping = await sandbox.commands.run(f"python3 swap.py {tmp_path}", background=True)
    while not await sandbox.files.exists("d"):
        await asyncio.sleep(0.01)
    seen: set[str] = set()
    tries = 0
    while tries < 150 or not seen >= {"own", "refused"}:
        tries += 1
        try:
            await sandbox.files.write("d/secret", "own")
            seen.add(await sandbox.files.read("d/secret"))
        except InvalidArgumentException:
            seen.add("refused")
    await swapping.kill()
    assert seen == {"own", "refused"}
    assert (tmp_path / "secret").read_text() == "of the host"


async def test_pipes_and_devices_are_neither_read_nor_waited_for(sandbox: AsyncSandbox) -> None:
    await sandbox.commands.run("mkfifo pipe; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'")
    async with asyncio.timeout(5):
        for path in ("pipe", "sock", "."):
            with pytest.raises(InvalidArgumentException):
                await sandbox.files.read(path)
            with pytest.raises(InvalidArgumentException):
                await sandbox.files.write(path, "text")


async def test_a_removed_folder_takes_what_links_point_to_not_with_it(sandbox: AsyncSandbox) -> None:
    await sandbox.commands.run("mkdir -p kept gone; echo 1 > kept/f; ln -s ../kept gone/link; chmod 000 gone")
    await sandbox.files.remove("gone")
    assert await sandbox.files.read("kept/f") == "1\n"
    with pytest.raises(InvalidArgumentException, match="workspace itself"):
        await sandbox.files.remove(HOME)


async def test_nothing_is_had_without_the_sandboxs_own_token(
    sandbox: AsyncSandbox, other_sandbox: AsyncSandbox, server: SandboxServer
) -> None:
    named = {"e2b-sandbox-id": sandbox.sandbox_id}
    foreign = {**named, "x-access-token": str(other_sandbox._envd_access_token)}
    async with httpx.AsyncClient(base_url=server.url, trust_env=False) as client:
        for headers in ({}, named, foreign, {"x-api-key": server.api_key}):
            for method, path in (
                ("GET", "/files?path=x"),
                ("POST", "/files?path=x"),
                ("POST", "/process.Process/List"),
            ):
                answer = await client.request(method, path, headers=headers, json={})
                assert answer.status_code == (401 if "e2b-sandbox-id" in headers else answer.status_code)
                assert answer.status_code >= 400
        assert (await client.get(f"/sandboxes/{sandbox.sandbox_id}")).status_code == 401
