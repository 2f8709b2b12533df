"""Every limit is reached on purpose: the machine stays well, the command ends, and its end names the limit."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from e2b import AsyncSandbox
from e2b.exceptions import NotEnoughSpaceException, RateLimitException, TimeoutException

from tests.integration.sandboxes.endpoint import failed, local_only
from tests.integration.sandboxes.server_process import LIMITS, SandboxServer

pytestmark = local_only


async def error_of(sandbox: AsyncSandbox, command: str) -> str:
    return str((await failed(sandbox, command, timeout=25)).error)


async def test_memory(sandbox: AsyncSandbox) -> None:
    error = await error_of(sandbox, "python3 -c 'held = [bytearray(10**7) for _ in range(100)]'")
    assert error.startswith("memory: ")
    assert f"{LIMITS.memory_mb} MiB of memory (limit memory_mb)" in error
    assert (await sandbox.commands.run("echo well")).stdout == "well\n"


async def test_memory_of_a_child_is_told_of_its_command(sandbox: AsyncSandbox) -> None:
    assert (await error_of(sandbox, "python3 -c 'x = bytearray(10**9)'; exit 5")).startswith("memory: ")


async def test_memory_shared_by_many_processes_counts_once_and_counts(sandbox: AsyncSandbox) -> None:
    fork = "import os; [os.fork() for _ in range(3)]; x = bytearray(5 * 10**7); import time; time.sleep(3)"
    assert (await error_of(sandbox, f"python3 -c '{fork}'; wait; exit 1")).startswith("memory: ")


async def test_a_fork_bomb(sandbox: AsyncSandbox) -> None:
    before = len(list(Path("/proc").iterdir()))
    error = await error_of(sandbox, ":(){ :|:& };:; sleep 20")
    assert error == f"processes: the sandbox reached its {LIMITS.processes} processes (limit processes)"
    assert len(list(Path("/proc").iterdir())) < before + 2 * LIMITS.processes
    assert (await sandbox.commands.run("echo well; ps aux | wc -l")).stdout.split()[0] == "well"


async def test_threads_count_as_processes(sandbox: AsyncSandbox) -> None:
    threads = "import threading, time; [threading.Thread(target=time.sleep, args=(5,)).start() for _ in range(100)]"
    assert (await error_of(sandbox, f"python3 -c '{threads}'")).startswith("processes: ")


async def test_processor_time(sandbox: AsyncSandbox) -> None:
    assert (
        await error_of(sandbox, "while :; do :; done") == "cpu: a process took over 2 s of processor time (limit cpu_s)"
    )


async def test_open_files(sandbox: AsyncSandbox) -> None:
    ended = await failed(sandbox, "python3 -c 'held = [open(\"/dev/null\") for _ in range(200)]'")
    assert "Too many open files" in ended.stderr


@pytest.mark.parametrize(
    "fill",
    [
        "head -c 100M /dev/zero > one",
        'python3 -c \'open("one", "wb").write(bytes(10**8))\'',
        "for i in $(seq 100); do head -c 1M /dev/zero > $i; sleep 0.02; done",
        "truncate -s 20M a; truncate -s 20M b; sleep 3",
    ],
    ids=["one file", "one file by a program that copes", "many files", "files that only look large"],
)
async def test_a_full_workspace(sandbox: AsyncSandbox, fill: str) -> None:
    assert (
        await error_of(sandbox, fill)
        == f"quota: the workspace is over its {LIMITS.workspace_mb} MiB (limit workspace_mb)"
    )
    assert (await sandbox.commands.run("rm -rf -- *; echo room")).stdout == "room\n"


HIDE = """
import os, time
held = []
for _ in range(9):
    held.append(open("x", "wb", buffering=0))
    held[-1].write(bytes(5 * 10**6))
    os.unlink("x")
time.sleep(5)
"""


async def test_files_that_have_lost_their_name_count_while_they_are_open(sandbox: AsyncSandbox) -> None:
    await sandbox.files.write("hide.py", HIDE)
    assert (await error_of(sandbox, "python3 hide.py")).startswith("quota: the workspace is over")


async def test_many_small_files(sandbox: AsyncSandbox) -> None:
    for where in (".", "/tmp"):
        error = await error_of(sandbox, f"cd {where}; for i in $(seq 3000); do : > f$i; done; sleep 3; exit 1")
        assert (
            error == f"quota: the sandbox holds over {LIMITS.workspace_files} files and folders (limit workspace_files)"
        )
        await sandbox.commands.run(f"cd {where}; rm -f f*")


DEEP = """
import os, time
for _ in range(900):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
time.sleep(5)
"""


async def test_folders_too_deep_to_name_can_be_ended_and_killed(sdk_options: dict[str, Any]) -> None:
    sandbox = await AsyncSandbox.create(timeout=60, **sdk_options)
    await sandbox.files.write("deep.py", DEEP)
    assert (await error_of(sandbox, "python3 deep.py")).startswith("quota: ")
    await sandbox.pause()
    await sandbox.connect()
    assert await sandbox.kill()


async def test_a_full_tmp(sandbox: AsyncSandbox) -> None:
    for where in ("/tmp/x", "/dev/shm/x"):
        assert (
            "No space left on device"
            in (await failed(sandbox, f"head -c 50M /dev/zero > {where}; rm {where}; false")).stderr
        )


async def test_an_upload_that_does_not_fit_is_not_kept(sandbox: AsyncSandbox) -> None:
    for streamed in (False, True):
        with pytest.raises(NotEnoughSpaceException, match="limit workspace_mb"):
            await sandbox.files.write("large", bytes(30_000_000), use_octet_stream=streamed)
    for _ in range(2):  # what is replaced makes room
        await sandbox.files.write("half", bytes(15_000_000))
    with pytest.raises(NotEnoughSpaceException):
        await sandbox.files.write("half2", bytes(15_000_000), gzip=True)
    assert (await sandbox.files.get_info("half")).size == 15_000_000


async def test_output_without_end(sandbox: AsyncSandbox) -> None:
    began = time.monotonic()
    ended = await failed(sandbox, "yes")
    assert ended.error == "output: the command wrote over 1 MiB of output (limit output_mb); write to a file"
    assert len(ended.stdout) <= LIMITS.output_mb << 20
    assert time.monotonic() - began < 5


async def test_no_command_outlives_the_longest_time(tmp_path_factory: pytest.TempPathFactory) -> None:
    short = LIMITS.model_copy(update={"command_s": 1.0, "sandboxes": 1})
    server = SandboxServer(tmp_path_factory.mktemp("short"), short).start()
    try:
        sandbox = await AsyncSandbox.create(**server.sdk_options)
        with pytest.raises(TimeoutException, match=r"within 1 s \(limit command_s\)"):
            await sandbox.commands.run("sleep 20", timeout=0)
        with pytest.raises(RateLimitException, match=r"no more than 1 sandboxes may run at once \(limit sandboxes\)"):
            await AsyncSandbox.create(retries=0, **server.sdk_options)
        await sandbox.pause()
        other = await AsyncSandbox.create(**server.sdk_options)
        with pytest.raises(RateLimitException):
            await sandbox.connect(retries=0)
        await other.kill()
    finally:
        server.stop()


async def test_twenty_sandboxes_at_once(sdk_options: dict[str, Any]) -> None:
    made = await asyncio.gather(*(AsyncSandbox.create(timeout=60, **sdk_options) for _ in range(20)))
    results = await asyncio.gather(
        *(each.commands.run("hostname; echo $RANDOM > f; sleep 0.2; cat f") for each in made)
    )
    assert [result.stdout.split()[0] for result in results] == [each.sandbox_id for each in made]
    assert all(await asyncio.gather(*(each.kill() for each in made)))
