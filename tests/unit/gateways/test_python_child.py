"""A child is seen to its end whatever it has written and nobody has read."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process

import pytest

from services.gateways.python_child import ended

WRITES_A_MEGABYTE = "import sys, time; sys.stdout.write('x' * 1_000_000); sys.stdout.flush(); time.sleep(600)"
NOT_FOR_EVER_S = 20


async def _writer() -> Process:
    """Already more than asyncio buffers has come, so that it has stopped reading."""
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", WRITES_A_MEGABYTE, stdin=PIPE, stdout=PIPE)
    reading = child._transport.get_pipe_transport(1)  # type: ignore[attr-defined]
    while reading.is_reading():
        await asyncio.sleep(0)
    return child


async def test_the_end_of_a_child_with_an_unread_reply_is_seen() -> None:
    child = await _writer()
    child.kill()
    async with asyncio.timeout(NOT_FOR_EVER_S):
        assert await ended(child) == -signal.SIGKILL
        assert await ended(child) == -signal.SIGKILL


async def test_so_is_that_of_one_that_does_not_end_in_time_and_is_then_killed() -> None:
    child = await _writer()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await ended(child)
    child.kill()
    async with asyncio.timeout(NOT_FOR_EVER_S):
        assert await ended(child) == -signal.SIGKILL


async def test_somebody_may_still_be_reading() -> None:
    child = await _writer()
    assert child.stdout is not None
    reading = asyncio.create_task(child.stdout.readexactly(10_000_000))
    await asyncio.sleep(0.05)
    child.kill()
    async with asyncio.timeout(NOT_FOR_EVER_S):
        assert await ended(child) == -signal.SIGKILL
    with pytest.raises(asyncio.IncompleteReadError):
        await reading
