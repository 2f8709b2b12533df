"""Several steps in one activity: each counted by itself, none after a cancel, none for an execution that may not have the run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.run_activities import claiming
from activities.step_runner import Step, StepRunner
from schemas.errors import EngineDown, PermanentFailure, TransientFailure
from schemas.settings import WorkSettings
from schemas.workflow_contracts import StepResult, WorkflowInput
from services.events.cancel_watch import CancelWatch
from services.stores import runs_store
from services.stores.database import Database
from tests.integration.events import runs
from tests.integration.events.facts import TENANT

EXECUTION = "execution-1"


class Activity:
    """An activity of one run; `done` lists the steps that were begun."""

    def __init__(self, database: Database, runner: StepRunner, run_id: str) -> None:
        self.database = database
        self.done: list[str] = []
        self._runner = runner
        self.run_id = run_id
        self._input = WorkflowInput(tenant=TENANT, run_id=run_id)

    def claim(self, execution_id: str = EXECUTION) -> Step:
        return claiming(self.database, self._runner, self._input, execution_id)

    def step(
        self, name: str, then: Callable[[], Awaitable[None]] | Exception | None = None, *, cancellable: bool = True
    ) -> Step:
        async def work() -> dict[str, int]:
            self.done.append(name)
            if isinstance(then, Exception):
                raise then
            if then is not None:
                await then()
            return {name: 1}

        return Step(name, work, cancellable=cancellable)

    async def take(self, *steps: Step) -> StepResult:
        result = await ActivityEnvironment().run(self._runner.run_all, self._input, *steps)
        assert isinstance(result, StepResult)
        return result

    async def wish_cancel(self) -> None:
        async with self.database.begin(TENANT) as transaction:
            await runs_store.request_cancel(transaction, self._input.run_id, "ada")

    async def failures(self, step: str) -> int:
        """Counts one more, and gives how many there were before."""
        async with self.database.begin(TENANT) as transaction:
            return await runs_store.count_failure(transaction, self._input.run_id, step) - 1


@pytest.fixture
async def watch(database: Database) -> AsyncIterator[CancelWatch]:
    watch = CancelWatch(database)
    listening = asyncio.create_task(watch.run())
    yield watch
    listening.cancel()


@pytest.fixture
async def activity(database: Database, watch: CancelWatch) -> Activity:
    runner = StepRunner(database, watch, WorkSettings(transient_tries=3), lambda name: None)
    return Activity(database, runner, await runs.queue_ingest(database, "d1"))


async def test_steps_come_in_order_and_their_counts_together(activity: Activity) -> None:
    result = await activity.take(activity.claim(), activity.step("one"), activity.step("two"))
    assert result == StepResult(counts={"one": 1, "two": 1})
    assert activity.done == ["one", "two"]


async def test_no_step_follows_one_that_is_not_done(activity: Activity) -> None:
    away = activity.step("one", EngineDown("qdrant", "Qdrant does not answer"))
    result = await activity.take(activity.claim(), away, activity.step("two"))
    assert (result.status, result.engine, activity.done) == ("engine_down", "qdrant", ["one"])


async def test_an_execution_that_may_not_have_the_run_takes_no_step(activity: Activity) -> None:
    await activity.take(activity.claim(), activity.step("mine"))
    result = await activity.take(activity.claim("execution-2"), activity.step("theirs"))
    assert (result.status, activity.done) == ("not_ours", ["mine"])


async def test_a_cancel_before_the_claim_lets_the_run_be_claimed_and_no_step_be_taken(activity: Activity) -> None:
    await activity.wish_cancel()
    result = await activity.take(activity.claim(), activity.step("one"))
    assert (result.status, activity.done) == ("cancelled", [])
    assert (await activity.take(activity.claim("execution-2"))).status == "not_ours"


async def test_a_cancel_that_was_wished_before_the_first_step_is_seen_without_a_claim(activity: Activity) -> None:
    await activity.wish_cancel()
    result = await activity.take(activity.step("one"))
    assert (result.status, activity.done) == ("cancelled", [])


async def test_a_cancel_during_a_step_ends_it_and_all_that_follow(activity: Activity) -> None:
    async def wish_and_wait() -> None:
        while True:  # heard once the watch listens
            await activity.wish_cancel()
            await asyncio.sleep(0.05)

    result = await activity.take(activity.claim(), activity.step("one", wish_and_wait), activity.step("two"))
    assert (result.status, activity.done) == ("cancelled", ["one"])


async def test_a_cancel_during_a_step_that_must_be_done_stops_before_the_next_that_need_not(
    activity: Activity, watch: CancelWatch
) -> None:
    async def wish() -> None:
        with watch.following(activity.run_id) as heard:
            while not heard.is_set():
                await activity.wish_cancel()
                await asyncio.sleep(0.05)

    must = [activity.step("publish", wish, cancellable=False), activity.step("sweep", cancellable=False)]
    result = await activity.take(activity.claim(), *must, activity.step("enrich"))
    assert (result.status, activity.done) == ("cancelled", ["publish", "sweep"])


async def test_failures_are_counted_for_their_own_step_and_name_it(activity: Activity) -> None:
    failing = activity.step("parse", TransientFailure("model_unavailable", "try later"))
    for _ in range(2):
        with pytest.raises(ApplicationError) as passing:
            await activity.take(activity.claim(), activity.step("fetch"), failing)
        assert not passing.value.non_retryable
    with pytest.raises(ApplicationError) as last:
        await activity.take(activity.claim(), activity.step("fetch"), failing)
    assert last.value.non_retryable
    assert (last.value.details[0]["code"], last.value.details[0]["step"]) == ("model_unavailable", "parse")
    assert (await activity.failures("parse"), await activity.failures("fetch")) == (3, 0)


async def test_a_permanent_failure_names_its_step(activity: Activity) -> None:
    encrypted = activity.step("parse", PermanentFailure("encrypted", "The file needs a password"))
    with pytest.raises(ApplicationError) as failed:
        await activity.take(activity.claim(), activity.step("fetch"), encrypted)
    assert failed.value.details[0] == {
        "code": "encrypted", "detail": "The file needs a password", "retryable": False, "step": "parse",
    }  # fmt: skip
