"""The adapter that the product uses, on the endpoint under test."""

from __future__ import annotations

import asyncio
import pickle
import time

import pytest

from schemas.errors import PermanentFailure
from services.gateways.e2b_sandboxes import E2bSandboxes
from services.gateways.sandbox import SandboxFile, SandboxGone
from tests.integration.sandboxes.endpoint import HOME, local_only


async def test_a_result_holds_output_and_exit_code_and_streams_meanwhile(
    sandboxes: E2bSandboxes, sandbox_id: str
) -> None:
    pieces: list[tuple[str, str]] = []

    async def on_output(stream: str, text: str) -> None:
        pieces.append((stream, text))

    command = "echo ä; sleep 0.3; echo err >&2; exit 4"
    result = await sandboxes.run(sandbox_id, command, timeout_s=20, on_output=on_output)
    assert (result.exit_code, result.stdout, result.stderr, result.ended) == (4, "ä\n", "err\n", "exited")
    assert pieces == [("stdout", "ä\n"), ("stderr", "err\n")]
    piped = await sandboxes.run(sandbox_id, "exit 3 | cat", timeout_s=20)
    assert piped.exit_code == 3


async def test_what_a_listener_raises_comes_through_as_it_is(sandboxes: E2bSandboxes, sandbox_id: str) -> None:
    async def on_output(stream: str, text: str) -> None:
        raise LookupError(text)

    with pytest.raises(LookupError, match="heard"):
        await sandboxes.run(sandbox_id, "echo heard; sleep 1", timeout_s=20, on_output=on_output)


async def test_ends_are_told_apart(sandboxes: E2bSandboxes, sandbox_id: str) -> None:
    late = await sandboxes.run(sandbox_id, "echo before; sleep 30", timeout_s=1)
    assert (late.ended, late.exit_code, late.stdout) == ("timeout", None, "before\n")
    assert "1 s" in late.detail
    crashed = await sandboxes.run(sandbox_id, "kill -SEGV $$", timeout_s=20)
    assert (crashed.ended, crashed.exit_code) == ("signal", None)


@local_only
@pytest.mark.parametrize(
    ("ended", "command"),
    [
        ("memory", "python3 -c 'x = bytearray(10**9)'"),
        ("quota", "head -c 100M /dev/zero > f"),
        ("output", "yes"),
    ],
)
async def test_the_limit_that_ended_a_command_is_named(
    sandboxes: E2bSandboxes, sandbox_id: str, ended: str, command: str
) -> None:
    result = await sandboxes.run(sandbox_id, command, timeout_s=20)
    assert result.ended == ended
    assert "(limit " in result.detail


async def test_a_tagged_command_runs_once_however_often_it_is_asked_for(
    sandboxes: E2bSandboxes, sandbox_id: str
) -> None:
    command = "echo started >> runs; echo out; sleep 1.5; echo end"
    first = asyncio.create_task(sandboxes.run(sandbox_id, command, timeout_s=20, tag="call-1"))
    await asyncio.sleep(0.6)
    first.cancel()  # as the end of a worker does
    with pytest.raises(asyncio.CancelledError):
        await first
    results = await asyncio.gather(*(sandboxes.run(sandbox_id, command, timeout_s=20, tag="call-1") for _ in range(2)))
    assert [(each.exit_code, each.ended) for each in results] == [(0, "exited")] * 2
    assert all(each.stdout.endswith("end\n") for each in results)
    assert await sandboxes.read(sandbox_id, "runs", max_bytes=100) == b"started\n"


@local_only
async def test_a_tagged_command_that_ended_is_not_run_again(sandboxes: E2bSandboxes, sandbox_id: str) -> None:
    for _ in range(3):
        result = await sandboxes.run(sandbox_id, "echo x >> runs; cat runs; exit 2", timeout_s=20, tag="call-2")
        assert (result.stdout, result.exit_code) == ("x\n", 2)
    both = [sandboxes.run(sandbox_id, "echo y >> both; sleep 0.3", timeout_s=20, tag="call-3") for _ in range(4)]
    await asyncio.gather(*both)
    assert await sandboxes.read(sandbox_id, "both", max_bytes=100) == b"y\n"


async def test_a_tagged_command_can_be_stopped(sandboxes: E2bSandboxes, sandbox_id: str) -> None:
    running = asyncio.create_task(sandboxes.run(sandbox_id, "sleep 60", timeout_s=60, tag="call-4"))
    await asyncio.sleep(0.6)
    began = time.monotonic()
    assert await sandboxes.stop(sandbox_id, "call-4")
    result = await running
    assert time.monotonic() - began < 1
    assert result.exit_code is None
    assert not await sandboxes.stop(sandbox_id, "call-of-nobody")


async def test_files_go_in_and_out(sandboxes: E2bSandboxes, sandbox_id: str) -> None:
    data = bytes(range(256)) * 1_000
    await sandboxes.write(sandbox_id, "in/data", data)
    assert await sandboxes.read(sandbox_id, "in/data", max_bytes=len(data)) == data
    assert SandboxFile(f"{HOME}/in/data", "file", len(data)) in await sandboxes.list(sandbox_id, "in")
    with pytest.raises(PermanentFailure, match="over 10 bytes") as large:
        await sandboxes.read(sandbox_id, "in/data", max_bytes=10)
    assert large.value.code == "too_large"
    with pytest.raises(PermanentFailure) as missing:
        await sandboxes.read(sandbox_id, "nothing", max_bytes=10)
    assert missing.value.code == "not_found"


@local_only
async def test_what_a_workspace_refuses_is_told_as_permanent(sandboxes: E2bSandboxes, sandbox_id: str) -> None:
    with pytest.raises(PermanentFailure) as full:
        await sandboxes.write(sandbox_id, "large", bytes(30_000_000))
    assert full.value.code == "quota"
    with pytest.raises(PermanentFailure) as outside:
        await sandboxes.read(sandbox_id, "/etc/passwd", max_bytes=10)
    assert outside.value.code == "refused"


async def test_a_paused_sandbox_is_resumed_by_whatever_uses_it(sandboxes: E2bSandboxes, sandbox_id: str) -> None:
    await sandboxes.write(sandbox_id, "kept", b"yes")
    for use in ("run", "read", "resume"):
        await sandboxes.pause(sandbox_id)
        await sandboxes.pause(sandbox_id)
        assert await sandboxes.exists(sandbox_id)
        match use:
            case "run":
                assert (await sandboxes.run(sandbox_id, "cat kept", timeout_s=20)).stdout == "yes"
            case "read":
                assert await sandboxes.read(sandbox_id, "kept", max_bytes=9) == b"yes"
            case "resume":
                await sandboxes.resume(sandbox_id)


async def test_a_killed_sandbox_is_gone(sandboxes: E2bSandboxes) -> None:
    sandbox_id = await sandboxes.create({})
    await sandboxes.kill(sandbox_id)
    await sandboxes.kill(sandbox_id)
    assert not await sandboxes.exists(sandbox_id)
    with pytest.raises(SandboxGone) as gone:
        await sandboxes.run(sandbox_id, "true", timeout_s=5)
    again = pickle.loads(pickle.dumps(gone.value))
    assert (again.code, again.detail) == ("sandbox_gone", gone.value.detail)


@local_only
async def test_the_same_key_makes_one_sandbox(sandboxes: E2bSandboxes) -> None:
    made = await asyncio.gather(*(sandboxes.create({}, key="session-1") for _ in range(3)))
    assert len(set(made)) == 1
    await sandboxes.kill(made[0])
    again = await sandboxes.create({}, key="session-1")
    assert again != made[0]
    await sandboxes.kill(again)


@local_only
async def test_of_long_output_the_beginning_and_the_end_are_kept(sandboxes: E2bSandboxes, sandbox_id: str) -> None:
    short = E2bSandboxes(sandboxes._options["api_key"], url=sandboxes._options["api_url"], kept_characters=100)
    result = await short.run(sandbox_id, "seq 1 20000", timeout_s=20)
    assert result.stdout.startswith("1\n2\n3\n")
    assert result.stdout.endswith("19999\n20000\n")
    assert result.left_out > 100_000
    assert f"{result.left_out} characters left out" in result.stdout
