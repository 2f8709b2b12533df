"""Transactions through the driver: prepared statements, failures by what they mean, connections in an unknown state."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from sqlalchemy import ARRAY, Text, bindparam, func, insert, select, text
from sqlalchemy.dialects.postgresql import JSONB

from schemas.errors import TransientFailure
from services.stores.database import Database
from services.stores.prepared import Prepared
from services.stores.tables.runs import run_steps

TENANT = "acme"
ADD = Prepared(
    text("INSERT INTO run_steps (run_id, step, result) VALUES (:run, :step, :result)").bindparams(
        bindparam("result", type_=JSONB)
    )
)
OF_RUNS = Prepared(
    select(run_steps.c.step, run_steps.c.result)
    .where(run_steps.c.run_id == func.any(bindparam("runs", type_=ARRAY(Text))), run_steps.c.failures == 0)
    .order_by(run_steps.c.step)
)
SLEEP = Prepared(text("SELECT pg_sleep(30)"))
ASLEEP = Prepared(text("SELECT count(*) FROM pg_stat_get_activity(NULL) WHERE wait_event = 'PgSleep'"))


async def _steps(database: Database, *runs: str) -> list[str]:
    async with database.begin(TENANT) as transaction:
        return [row["step"] for row in await transaction.all(OF_RUNS, {"runs": list(runs)})]


async def test_prepared_and_built_statements_share_one_transaction(database: Database) -> None:
    result = {"words": ["ü", 1, None, {"deep": True}]}
    async with database.begin(TENANT) as transaction:
        assert await transaction.run(ADD, {"run": "r1", "step": "a", "result": result}) == 1
        await transaction.execute(insert(run_steps).values(run_id="r1", step="b", result=None))
        rows = await transaction.all(OF_RUNS, {"runs": ["r1", "r2"]})
        assert [dict(row) for row in rows] == [{"step": "a", "result": result}, {"step": "b", "result": None}]
        assert await transaction.scalar(select(func.count()).select_from(run_steps)) == 2
    assert await _steps(database, "r1") == ["a", "b"]


async def test_what_fails_is_rolled_back_whole(database: Database) -> None:
    async def add_one_twice() -> None:
        async with database.begin(TENANT) as transaction:
            await transaction.run(ADD, {"run": "r1", "step": "a", "result": {}})
            await transaction.execute(insert(run_steps).values(run_id="r1", step="b"))
            await transaction.run(ADD, {"run": "r1", "step": "a", "result": {}})

    with pytest.raises(psycopg.errors.UniqueViolation):
        await add_one_twice()
    assert await _steps(database, "r1") == []


async def _asleep(database: Database) -> bool:
    """A transaction of its own for each look: what it sees of other sessions stays as it was at its first."""
    async with database.begin(TENANT) as transaction:
        return bool(await transaction.scalar(ASLEEP))


async def test_a_cancelled_statement_costs_its_connection_and_nothing_else(database: Database) -> None:
    async def sleeper() -> None:
        async with database.begin(TENANT) as transaction:
            await transaction.run(ADD, {"run": "r1", "step": "a", "result": {}})
            await transaction.all(SLEEP)

    task = asyncio.create_task(sleeper())
    while not await _asleep(database):
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await _steps(database, "r1") == []


async def test_of_two_that_wait_for_each_other_one_may_try_again(database: Database) -> None:
    both = asyncio.Barrier(2)

    async def lock(first: str, second: str) -> None:
        async with database.begin(TENANT) as transaction:
            await transaction.lock(first)
            await both.wait()
            await transaction.lock(second)

    outcomes = await asyncio.gather(lock("x", "y"), lock("y", "x"), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes if outcome is not None] == [TransientFailure]


async def test_a_lock_is_taken_once_and_ends_with_its_transaction(database: Database) -> None:
    async with database.begin(TENANT) as transaction:
        await transaction.lock("x")
        await transaction.lock("x")
        async with database.begin(TENANT) as other:
            assert not await other.try_lock("x")
    async with database.begin(TENANT) as transaction:
        assert await transaction.try_lock("x")


async def test_a_prepared_statement_sees_its_tenant_alone(database: Database) -> None:
    async with database.begin(TENANT) as transaction:
        await transaction.run(ADD, {"run": "r1", "step": "a", "result": {}})
    async with database.begin("globex") as transaction:
        assert await transaction.all(OF_RUNS, {"runs": ["r1"]}) == []
