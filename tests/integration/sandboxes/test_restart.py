"""The server is killed, stopped and started again, with sandboxes in every state."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2b import AsyncSandbox
from e2b.exceptions import SandboxException

from infra.e2b_local.data_folder import DataFolder, DataFolderUnusable
from schemas.errors import EngineDown
from services.gateways.e2b_sandboxes import E2bSandboxes
from tests.architecture.repository import ROOT
from tests.integration.sandboxes.endpoint import local_only
from tests.integration.sandboxes.server_process import SandboxServer, processes_of

pytestmark = local_only


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxServer]:
    """Every test leaves it running."""
    server = SandboxServer(tmp_path_factory.mktemp("restarted") / "data").start()
    yield server
    server.stop()


async def test_after_a_kill_no_process_is_left_and_every_sandbox_is_there_with_its_files(server: SandboxServer) -> None:
    running = await AsyncSandbox.create(timeout=300, metadata={"of": "test"}, **server.sdk_options)
    paused = await AsyncSandbox.create(timeout=300, **server.sdk_options)
    for sandbox in (running, paused):
        await sandbox.files.write("kept", sandbox.sandbox_id)
    await paused.pause()
    await running.commands.run("sleep 4242 & setsid sleep 4242 & sleep 4242", background=True)
    async with asyncio.timeout(5):
        while len(processes_of("sleep\x004242")) < 3:
            await asyncio.sleep(0.02)
    server.kill()
    async with asyncio.timeout(10):
        while processes_of(running.sandbox_id) or processes_of("sleep\x004242"):
            await asyncio.sleep(0.05)
    server.start()
    for sandbox in (running, paused):
        again = await AsyncSandbox.connect(sandbox.sandbox_id, **server.sdk_options)
        assert await again.files.read("kept") == sandbox.sandbox_id
        assert (await again.commands.run("cat kept")).stdout == sandbox.sandbox_id
    assert (await again.get_info()).metadata == {}
    assert (await AsyncSandbox.get_info(running.sandbox_id, **server.sdk_options)).metadata == {"of": "test"}


async def test_a_stopped_server_leaves_no_process_behind(server: SandboxServer) -> None:
    sandbox = await AsyncSandbox.create(timeout=300, **server.sdk_options)
    await sandbox.commands.run("sleep 5353 & setsid sleep 5353 & sleep 5353", background=True)
    assert server.stop() == 0
    assert processes_of("sleep\x005353") == []
    server.start()


async def test_what_a_kill_left_half_done_is_mended(server: SandboxServer) -> None:
    paused = await AsyncSandbox.create(timeout=300, **server.sdk_options)
    await paused.files.write("kept", "yes")
    await paused.pause()
    folder = server.data_dir / "open" / "sandboxes"
    server.kill()
    (folder / paused.sandbox_id / "view.draft" / "home").mkdir(parents=True)  # a resume that was not finished
    (folder / "ihalfmade").mkdir()  # a creation without a record
    (server.data_dir / "snapshots" / "igone.tar.gz").write_bytes(b"of a sandbox that was killed")
    server.start()
    assert not (folder / "ihalfmade").exists()
    assert [path.name for path in (server.data_dir / "snapshots").iterdir()] == [f"{paused.sandbox_id}.tar.gz"]
    again = await AsyncSandbox.connect(paused.sandbox_id, **server.sdk_options)
    assert await again.files.read("kept") == "yes"


async def test_a_snapshot_that_is_broken_is_told_as_that(server: SandboxServer) -> None:
    sandbox = await AsyncSandbox.create(timeout=300, **server.sdk_options)
    await sandbox.files.write("f", "text")
    await sandbox.pause()
    packed = server.data_dir / "snapshots" / f"{sandbox.sandbox_id}.tar.gz"
    packed.write_bytes(packed.read_bytes()[:60])
    with pytest.raises(SandboxException, match="cannot be brought back"):
        await sandbox.connect(retries=0)
    assert await sandbox.kill()
    assert not packed.exists()


async def test_a_lost_server_is_an_engine_that_is_down(server: SandboxServer) -> None:
    sandboxes = E2bSandboxes(server.api_key, url=server.url)
    sandbox_id = await sandboxes.create({})
    by_sdk = await AsyncSandbox.connect(sandbox_id, **server.sdk_options)
    running = asyncio.create_task(sandboxes.run(sandbox_id, "sleep 60", timeout_s=60))
    await asyncio.sleep(0.5)
    server.kill()
    calls = (running, sandboxes.create({}), sandboxes.read(sandbox_id, "f", max_bytes=9), sandboxes.exists(sandbox_id))
    began = time.monotonic()
    for call in calls:
        with pytest.raises(EngineDown) as down:
            await call
        assert down.value.engine == "sandboxes"
    assert time.monotonic() - began < 2
    with pytest.raises(SandboxException, match="could not be reached"):
        await by_sdk.commands.run("true")
    server.start()


def test_the_server_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    start = (
        "import subprocess, sys, os\n"
        "argv = [sys.executable, '-m', 'infra.e2b_local', '--data-dir', sys.argv[1]]\n"
        "server = subprocess.Popen(argv, stdout=subprocess.PIPE)\n"
        "server.stdout.readline()\n"
        "print(server.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    parent = subprocess.run([sys.executable, "-c", start, tmp_path], stdout=subprocess.PIPE, cwd=ROOT, check=False)
    deadline = time.monotonic() + 10
    while Path(f"/proc/{int(parent.stdout)}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_second_server_on_the_same_data_is_refused(server: SandboxServer) -> None:
    with pytest.raises(DataFolderUnusable, match="used by another sandbox server"):
        DataFolder(server.data_dir).hold()


def test_data_that_every_sandbox_would_see_is_refused() -> None:
    with pytest.raises(DataFolderUnusable, match="lies in /usr, which every sandbox sees"):
        DataFolder(Path("/usr/share/sandboxes")).hold()
