"""Commands through the unmodified SDK: output, input, environment, ends."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from e2b import AsyncSandbox, Sandbox
from e2b.exceptions import InvalidArgumentException, SandboxException, TimeoutException
from e2b.sandbox.commands.command_handle import CommandExitException

from tests.integration.sandboxes.endpoint import HOME, failed, local_only


async def test_a_command_tells_its_output_and_its_exit_code(sandbox: AsyncSandbox) -> None:
    result = await sandbox.commands.run("echo out; echo err >&2")
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 0)
    assert (await failed(sandbox, "echo half; exit 7")).exit_code == 7


async def test_output_arrives_while_the_command_runs(sandbox: AsyncSandbox) -> None:
    arrived: list[tuple[str, float]] = []
    began = time.monotonic()
    await sandbox.commands.run(
        "echo first; sleep 0.6; echo second >&2",
        on_stdout=lambda text: arrived.append((text, time.monotonic() - began)),
        on_stderr=lambda text: arrived.append((text, time.monotonic() - began)),
    )
    assert [text for text, _ in arrived] == ["first\n", "second\n"]
    assert arrived[1][1] - arrived[0][1] > 0.4


async def test_a_command_sees_the_environment_and_the_folder_it_is_given(sdk_options: dict[str, Any]) -> None:
    sandbox = await AsyncSandbox.create(envs={"OF_SANDBOX": "a", "OF_BOTH": "b"}, timeout=60, **sdk_options)
    try:
        result = await sandbox.commands.run('echo "$OF_SANDBOX $OF_BOTH $PWD"', envs={"OF_BOTH": "c"}, cwd="/tmp")
        assert result.stdout == "a c /tmp\n"
        assert (await sandbox.commands.run("pwd; whoami", user="user")).stdout == f"{HOME}\nuser\n"
    finally:
        await sandbox.kill()


@local_only
async def test_a_pipeline_fails_when_a_part_of_it_fails(sandbox: AsyncSandbox) -> None:
    assert (await failed(sandbox, "exit 3 | cat")).exit_code == 3


@local_only
async def test_a_folder_that_is_not_there_and_a_user_that_is_not_there_are_named(sandbox: AsyncSandbox) -> None:
    with pytest.raises(InvalidArgumentException, match="/nowhere does not exist"):
        await sandbox.commands.run("true", cwd="/nowhere")
    with pytest.raises(InvalidArgumentException, match="no user 'root' here"):
        await sandbox.commands.run("true", user="root")


async def test_a_command_takes_input_until_it_is_closed(sandbox: AsyncSandbox) -> None:
    command = await sandbox.commands.run("cat; echo end", background=True, stdin=True)
    await command.send_stdin("one\n")
    await sandbox.commands.send_stdin(command.pid, b"two\n")
    await command.close_stdin()
    assert (await command.wait()).stdout == "one\ntwo\nend\n"


@local_only
async def test_ordered_input_can_be_streamed(sandbox: AsyncSandbox) -> None:
    command = await sandbox.commands.run("wc -c", background=True, stdin=True)
    async with sandbox.commands.stream_input(command.pid) as stream:
        for _ in range(20):
            await stream.send("x" * 10_000)
    await command.close_stdin()
    assert (await command.wait()).stdout.strip() == "200000"


async def test_a_background_command_is_listed_joined_and_killed(sandbox: AsyncSandbox) -> None:
    command = await sandbox.commands.run("echo ready; sleep 60", background=True)
    listed = await sandbox.commands.list()
    assert [(each.pid, each.args[-1]) for each in listed] == [(command.pid, "echo ready; sleep 60")]
    joined = await sandbox.commands.connect(command.pid)
    assert await sandbox.commands.kill(command.pid)
    for handle in (command, joined):
        with pytest.raises(CommandExitException) as ended:
            await handle.wait()
        assert ended.value.exit_code == -1
    assert await sandbox.commands.list() == []
    assert not await sandbox.commands.kill(command.pid)


async def test_a_command_over_its_time_ends_with_all_it_started(sandbox: AsyncSandbox) -> None:
    began = time.monotonic()
    with pytest.raises(TimeoutException, match="timeout"):
        await sandbox.commands.run("sleep 321 & sleep 321", timeout=1)
    assert time.monotonic() - began < 3
    await asyncio.sleep(0.2)
    assert (await sandbox.commands.run("pgrep -f '^sleep 321' || true")).stdout == ""


@local_only
async def test_a_command_with_no_time_of_its_own_has_that_of_the_limit(sandbox: AsyncSandbox) -> None:
    command = await sandbox.commands.run("sleep 100", timeout=0, background=True)
    assert await command.kill()


async def test_an_end_by_a_signal_is_told_as_one(sandbox: AsyncSandbox) -> None:
    ended = await failed(sandbox, "kill -SEGV $$")
    assert ended.exit_code == -1
    assert ended.error is not None
    assert ended.error.startswith("signal: ")


FETCH = """
import time, urllib.request
for _ in range(50):
    try:
        print(urllib.request.urlopen("http://127.0.0.1:8123/page").read().decode())
        break
    except OSError:
        time.sleep(0.1)
"""


async def test_what_a_command_leaves_running_goes_on_and_is_reached_by_the_next(sandbox: AsyncSandbox) -> None:
    await sandbox.files.write("fetch.py", FETCH)
    await sandbox.commands.run("echo served > /tmp/page; (python3 -m http.server -d /tmp 8123 >/dev/null 2>&1 &)")
    assert "served" in (await sandbox.commands.run("python3 fetch.py")).stdout


@local_only
async def test_output_of_what_was_left_running_is_not_waited_for(sandbox: AsyncSandbox) -> None:
    began = time.monotonic()
    assert (await sandbox.commands.run("sleep 30 & echo done")).stdout == "done\n"
    assert (await sandbox.commands.run("(sleep 0.2; yes) & echo done")).stdout == "done\n"
    await asyncio.sleep(0.5)
    assert (await sandbox.commands.run("pgrep -c yes")).stdout == "1\n"  # it is neither ended nor heard
    assert time.monotonic() - began < 5


async def test_bytes_that_are_no_text_do_not_break_the_stream(sandbox: AsyncSandbox) -> None:
    result = await sandbox.commands.run(r"printf 'a\xff\xe4\xbd'; printf '\xa0b'")
    assert result.stdout == "a\ufffd\u4f60b"


@local_only
async def test_terminals_and_watching_are_refused_in_words(sandbox: AsyncSandbox) -> None:
    with pytest.raises(SandboxException, match="watching folders is not supported"):
        await sandbox.files.watch_dir(".", lambda event: None)


def test_the_blocking_sdk_works_as_well(sdk_options: dict[str, Any]) -> None:
    sandbox = Sandbox.create(timeout=60, **sdk_options)
    try:
        assert sandbox.commands.run("echo hi").stdout == "hi\n"
        sandbox.files.write("a.txt", "text")
        assert sandbox.files.read("a.txt") == "text"
    finally:
        assert sandbox.kill()
