"""The supervising process itself is killed with SIGKILL, or refused, or runs as somebody else."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import pytest

from infra.local_stack import DataDir, DataDirHeld, EngineAddresses
from infra.local_stack.postgres_engine import PostgresEngine
from infra.local_stack.postgres_identity import can_run, identities, installed_programs
from infra.local_stack.process_record import start_ticks
from infra.local_stack.supervised_process import LAUNCHER, SupervisedProcess
from tests.integration.local_stack.running_stack import (
    all_gone,
    count_workflows,
    running_stack,
    sql,
    start_workflow,
    until,
)

HOLD_A_STACK = """
import asyncio, dataclasses, datetime, json, os, pathlib, signal, sys
from infra.local_stack import DataDir, LocalStack
from schemas.settings import Settings

async def main():
    data_dir = DataDir(pathlib.Path(sys.argv[1]))
    data_dir.hold(datetime.datetime.now(datetime.UTC))
    stack = LocalStack(Settings(), data_dir)
    addresses = await stack.start()
    print(json.dumps({"pids": stack.pids(), "addresses": dataclasses.asdict(addresses)}), flush=True)
    asked_to_stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked_to_stop.set)
    await asked_to_stop.wait()
    await stack.stop()
    os._exit(0)

asyncio.run(main())
"""


@asynccontextmanager
async def supervisor(data_dir: Path, *prefix: str) -> AsyncIterator[tuple[int, dict[str, int], EngineAddresses]]:
    """A process of its own that holds a stack; its pid, the engines' pids and their addresses. Stopped at the end."""
    process = await asyncio.create_subprocess_exec(
        *prefix, sys.executable, "-c", HOLD_A_STACK, str(data_dir), stdout=subprocess.PIPE, limit=1_000_000
    )
    assert process.stdout is not None
    try:
        line = json.loads(await asyncio.wait_for(process.stdout.readline(), 60))
        yield process.pid, line["pids"], EngineAddresses(**line["addresses"])
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def test_every_engine_dies_with_a_killed_supervisor_and_the_next_start_has_the_data(tmp_path: Path) -> None:
    async with supervisor(tmp_path) as (pid, engines, addresses):
        await sql(addresses, "CREATE TABLE kept (n int)", "INSERT INTO kept VALUES (7)")
        await start_workflow(addresses, "kept")
        os.kill(pid, signal.SIGKILL)
        await until(lambda: all_gone(list(engines.values())))
    async with running_stack(tmp_path) as running:
        assert running.addresses == addresses
        assert await sql(running.addresses, "SELECT n FROM kept") == [(7,)]
        assert await count_workflows(running.addresses) == 1


async def test_supervisor_and_engines_killed_all_at_once_start_clean_again(tmp_path: Path) -> None:
    async with supervisor(tmp_path) as (pid, engines, addresses):
        await sql(addresses, "CREATE TABLE kept (n int)", "INSERT INTO kept VALUES (7)")
        for number in (pid, *engines.values()):
            with contextlib.suppress(ProcessLookupError):  # it has died with its supervisor already
                os.kill(number, signal.SIGKILL)
    async with running_stack(tmp_path) as running:
        assert await sql(running.addresses, "SELECT n FROM kept") == [(7,)]


async def test_a_leftover_that_did_not_die_with_its_supervisor_is_ended_by_the_next_start(tmp_path: Path) -> None:
    async with supervisor(tmp_path) as (pid, engines, _):
        os.kill(engines["postgres"], signal.SIGSTOP)  # the kernel's SIGQUIT now waits
        os.kill(pid, signal.SIGKILL)
    assert start_ticks(engines["postgres"]) is not None
    async with running_stack(tmp_path) as running:
        assert all_gone(list(engines.values()))
        assert await sql(running.addresses, "SELECT 1") == [(1,)]


async def test_a_second_supervisor_is_refused_and_told_who_holds_the_directory(tmp_path: Path) -> None:
    async with supervisor(tmp_path) as (pid, engines, _):
        with pytest.raises(DataDirHeld, match=str(pid)):
            DataDir(tmp_path).hold(datetime.now(UTC))
        assert all(start_ticks(engine) is not None for engine in engines.values())


async def test_a_start_that_is_cancelled_halfway_leaves_nothing(tmp_path: Path) -> None:
    async def hold() -> None:
        async with running_stack(tmp_path):
            await asyncio.sleep(600)

    start = asyncio.create_task(hold())
    records = tmp_path / "run"
    await until(lambda: (records / "temporal.json").exists())
    pids = [json.loads(path.read_text())["pid"] for path in records.glob("*.json") if path.name != "ports.json"]
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert all_gone(pids)
    assert [path.name for path in records.iterdir()] == ["ports.json"]


def usable_identity(kind: str) -> str:
    if os.geteuid() != 0:
        pytest.skip("only root becomes somebody else")
    usable = [
        identity for identity in identities() if identity.startswith(kind) and can_run(identity, installed_programs())
    ]
    if not usable:
        pytest.skip(f"this machine does not let root run Postgres by {kind}")
    return usable[0]


@pytest.mark.parametrize("kind", ["namespace", "account"])
async def test_root_runs_postgres_in_a_directory_others_cannot_enter(tmp_path: Path, kind: str) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    data_dir = DataDir(closed / "data")
    data_dir.hold(datetime.now(UTC))
    engine = PostgresEngine(data_dir, installed_programs(), usable_identity(kind))
    process = SupervisedProcess(engine, data_dir, lambda name: None)
    try:
        await process.start()
        addresses = EngineAddresses(engine.url, "", None, "")
        assert await sql(addresses, "SELECT 1") == [(1,)]
        capabilities = [
            line for line in Path(f"/proc/{process.pid}/status").read_text().splitlines() if "CapEff" in line
        ]
        assert int(capabilities[0].split()[1], 16) == 0
    finally:
        await process.stop()
        engine.clean_up()
        data_dir.release()


async def test_an_ordinary_user_runs_everything_as_itself(tmp_path: Path) -> None:
    launcher = (sys.executable, "-I", "-S", str(LAUNCHER), str(os.getpid()), "9", usable_identity("namespace"))
    async with supervisor(tmp_path, *launcher) as (_, _, addresses):
        assert await sql(addresses, "SELECT 1") == [(1,)]
        assert asdict(addresses)["temporal_ui_url"].startswith("http://127.0.0.1:")
