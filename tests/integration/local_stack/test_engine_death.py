"""An engine is killed with SIGKILL while the supervisor lives."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.local_stack.running_stack import (
    RunningStack,
    all_gone,
    count_workflows,
    running_stack,
    send_and_receive,
    sql,
    start_workflow,
    until,
)


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[RunningStack]:
    async with running_stack(tmp_path) as stack:
        yield stack


async def kill_and_await_restart(running: RunningStack, name: str) -> None:
    times = len(running.restarted)
    killed = running.stack.pids()[name]
    os.kill(killed, signal.SIGKILL)
    await until(lambda: running.restarted[times:] == [name])
    assert running.stack.pids()[name] != killed


async def test_a_killed_postgres_is_back_on_its_address_with_every_committed_row(running: RunningStack) -> None:
    await sql(running.addresses, "CREATE TABLE kept (n int)", "INSERT INTO kept SELECT generate_series(1, 1000)")
    for _ in range(2):
        await kill_and_await_restart(running, "postgres")
        assert await sql(running.addresses, "SELECT count(*) FROM kept") == [(1000,)]


async def test_a_killed_postgres_comes_back_although_a_backend_is_in_a_long_query(running: RunningStack) -> None:
    busy = "DO $$ BEGIN FOR i IN 1..1000000000 LOOP PERFORM i; END LOOP; END $$"
    query = asyncio.create_task(sql(running.addresses, busy))
    active = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'DO $$%' AND state = 'active'"
    while await sql(running.addresses, active) != [(1,)]:
        await asyncio.sleep(0.02)
    await kill_and_await_restart(running, "postgres")
    with pytest.raises(Exception, match="closed the connection"):
        await query
    assert await sql(running.addresses, "SELECT 1") == [(1,)]


async def test_a_killed_temporal_is_back_on_its_address_with_every_workflow(running: RunningStack) -> None:
    for number in range(5):
        await start_workflow(running.addresses, f"kept-{number}")
    await kill_and_await_restart(running, "temporal")
    async with asyncio.timeout(20):
        while await count_workflows(running.addresses) != 5:
            await asyncio.sleep(0.05)


async def test_a_killed_kafka_is_back_on_its_address(running: RunningStack) -> None:
    await kill_and_await_restart(running, "kafka")
    assert send_and_receive(running.addresses, "perdure.test", b"again") == b"again"


async def test_all_engines_killed_at_once_come_back(running: RunningStack) -> None:
    for pid in running.stack.pids().values():
        os.kill(pid, signal.SIGKILL)
    await until(lambda: sorted(running.restarted) == ["kafka", "postgres", "temporal"])
    assert await sql(running.addresses, "SELECT 1") == [(1,)]


async def test_a_child_of_ours_is_restarted_and_ended_with_what_it_started(
    running: RunningStack, tmp_path: Path
) -> None:
    script = (
        "import subprocess, sys, time, pathlib\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        "pathlib.Path(sys.argv[1]).write_text(str(child.pid))\n"
        "time.sleep(600)\n"
    )
    note = tmp_path / "grandchild"
    await running.stack.run_child("consumers", [sys.executable, "-c", script, str(note)], {"PATH": os.defpath})
    await until(lambda: note.exists() and note.read_text() != "")
    first = int(note.read_text())
    await kill_and_await_restart(running, "consumers")
    await until(lambda: note.read_text() not in ("", str(first)))
    second, consumers = int(note.read_text()), running.stack.pids()["consumers"]
    assert all_gone([first])
    await running.stack.stop()
    await until(lambda: all_gone([second, consumers]))
