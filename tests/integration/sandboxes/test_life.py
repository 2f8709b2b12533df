"""A sandbox from its making to its end: found again, paused, resumed, let go."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from e2b import AsyncSandbox, SandboxQuery, SandboxState
from e2b.exceptions import (
    AuthenticationException,
    InvalidArgumentException,
    SandboxException,
    SandboxNotFoundException,
    SandboxNotRunningException,
)
from e2b.sandbox.commands.command_handle import CommandExitException

from tests.integration.sandboxes.endpoint import local_only


async def test_a_sandbox_is_found_by_its_metadata_and_told_of(sdk_options: dict[str, Any]) -> None:
    mark = f"mark {time.time_ns()} äß=&"
    sandbox = await AsyncSandbox.create(metadata={"mark": mark}, timeout=100, **sdk_options)
    try:
        found = await AsyncSandbox.list(SandboxQuery(metadata={"mark": mark}), **sdk_options).next_items()
        assert [each.sandbox_id for each in found] == [sandbox.sandbox_id]
        paused = SandboxQuery(metadata={"mark": mark}, state=[SandboxState.PAUSED])
        assert await AsyncSandbox.list(paused, **sdk_options).next_items() == []
        info = await sandbox.get_info()
        assert (info.metadata, info.state) == ({"mark": mark}, SandboxState.RUNNING)
        assert 90 < (info.end_at - info.started_at).total_seconds() < 110
        await sandbox.set_timeout(1_000)
        assert ((await sandbox.get_info()).end_at - info.end_at).total_seconds() > 800
    finally:
        await sandbox.kill()


async def test_a_list_comes_in_pages(
    sandbox: AsyncSandbox, other_sandbox: AsyncSandbox, sdk_options: dict[str, Any]
) -> None:
    pages = AsyncSandbox.list(limit=1, **sdk_options)
    found = []
    while pages.has_next:
        found += [each.sandbox_id for each in await pages.next_items()]
    assert {sandbox.sandbox_id, other_sandbox.sandbox_id} <= set(found)


async def test_a_killed_sandbox_is_gone_for_everything(sdk_options: dict[str, Any]) -> None:
    sandbox = await AsyncSandbox.create(timeout=60, **sdk_options)
    assert await sandbox.is_running()
    assert await sandbox.kill()
    assert not await sandbox.is_running()
    assert not await sandbox.kill()
    with pytest.raises(SandboxNotRunningException):
        await sandbox.commands.run("true")
    with pytest.raises(SandboxNotFoundException):
        await AsyncSandbox.connect(sandbox.sandbox_id, **sdk_options)


async def test_a_paused_sandbox_keeps_its_files_and_comes_back_when_connected_to(sandbox: AsyncSandbox) -> None:
    await sandbox.commands.run(
        "mkdir -p d/e; echo text > d/e/f; chmod 640 d/e/f; ln -s f d/e/link; ln d/e/f d/hard; mkdir empty; touch -d @1000000000 d"
    )
    assert await sandbox.pause()
    assert not await sandbox.pause()
    assert (await sandbox.get_info()).state == SandboxState.PAUSED
    with pytest.raises(SandboxNotRunningException):
        await sandbox.commands.run("true")
    await sandbox.connect()
    look = "cat d/e/link; stat -c '%a %h %U' d/e/f; stat -c %Y d; ls -d empty; echo more >> d/hard; cat d/e/f"
    assert (await sandbox.commands.run(look)).stdout.split() == [
        "text",
        "640",
        "2",
        "user",
        "1000000000",
        "empty",
        "text",
        "more",
    ]


@local_only
async def test_pausing_ends_a_command_and_tells_its_caller(sandbox: AsyncSandbox) -> None:
    command = await sandbox.commands.run("sleep 100", background=True)
    await sandbox.beta_pause()
    with pytest.raises(CommandExitException) as ended:
        await command.wait()
    assert ended.value.error == "stopped: the sandbox was paused"


@local_only
async def test_a_sandbox_whose_time_is_over_is_killed_or_paused_as_it_was_asked(sdk_options: dict[str, Any]) -> None:
    killed = await AsyncSandbox.create(timeout=1, **sdk_options)
    paused = await AsyncSandbox.create(timeout=1, lifecycle={"on_timeout": "pause"}, **sdk_options)
    await paused.files.write("kept", "yes")
    async with asyncio.timeout(10):
        while await killed.is_running() or await paused.is_running():
            await asyncio.sleep(0.1)
    with pytest.raises(SandboxNotFoundException):
        await killed.get_info()
    await paused.connect(timeout=60)
    assert await paused.files.read("kept") == "yes"
    await paused.kill()


async def test_the_same_key_gives_the_same_sandbox(sdk_options: dict[str, Any]) -> None:
    key = f"key-{time.time_ns()}"
    made = await asyncio.gather(*(AsyncSandbox.create(idempotency_key=key, **sdk_options) for _ in range(3)))
    assert len({each.sandbox_id for each in made}) == 1
    assert await made[0].kill()


async def test_a_wrong_key_reaches_nothing(sdk_options: dict[str, Any]) -> None:
    with pytest.raises(AuthenticationException):
        await AsyncSandbox.create(**{**sdk_options, "api_key": "e2b_" + "0" * 40})


@local_only
async def test_what_a_local_sandbox_does_not_have_is_refused_when_it_is_asked_for(sdk_options: dict[str, Any]) -> None:
    with pytest.raises(SandboxException, match="no network"):
        await AsyncSandbox.create(allow_internet_access=True, **sdk_options)
    with pytest.raises(SandboxException, match="no template 'big'"):
        await AsyncSandbox.create("big", **sdk_options)
    with pytest.raises(SandboxException, match="limit life_s"):
        await AsyncSandbox.create(timeout=10_000_000, **sdk_options)


@local_only
async def test_names_of_environment_variables_are_checked(sdk_options: dict[str, Any]) -> None:
    with pytest.raises((InvalidArgumentException, SandboxException), match="environment variable"):
        await AsyncSandbox.create(envs={"A=B": "c"}, **sdk_options)
