"""Claiming a run, and telling of its waits and its end: what every workflow needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from temporalio import activity

from activities.failure_mapping import CancelWished, NotOurs
from activities.step_runner import Step, StepRunner
from schemas.runs import RunEnd, RunEventDraft
from schemas.workflow_contracts import ClaimInput, StepResult, WaitingInput, WorkflowInput
from services.events import run_ending
from services.stores import run_event_log, runs_store
from services.stores.database import Database, Row, Transaction

POLICIES = {"retrieval": 1, "citations": 1, "access": 1}
"""Versions of the rules a run was started under, shown in `run.started`."""


class RunActivities:
    """The same few for every workflow."""

    def __init__(self, database: Database, runner: StepRunner) -> None:
        self._database = database
        self._runner = runner

    @activity.defn(name="claim_run")
    async def claim(self, input: ClaimInput) -> StepResult:
        """Status `done` when this execution holds the run, `not_ours` when it has ended or is another's."""
        return await claim_run(self._database, self._runner, input, input.execution_id)

    @activity.defn(name="show_waiting")
    async def show_waiting(self, input: WaitingInput) -> StepResult:
        async def work() -> None:
            async with self._database.begin(input.tenant) as transaction:
                await runs_store.wait(transaction, input.run_id, input.waiting_for, input.until)
                data = {"for": input.waiting_for, "until": input.until}
                await run_event_log.append(transaction, input.run_id, [RunEventDraft(type="run.waiting", data=data)])

        return await self._runner.run("show_waiting", input, work, cancellable=False)

    @activity.defn(name="show_resumed")
    async def show_resumed(self, input: WorkflowInput) -> StepResult:
        async def work() -> None:
            async with self._database.begin(input.tenant) as transaction:
                await runs_store.resume(transaction, input.run_id)

        return await self._runner.run("show_resumed", input, work, cancellable=False)


async def claim_run(database: Database, runner: StepRunner, input: WorkflowInput, execution_id: str) -> StepResult:
    """The first thing any execution does (invariant 3), whether or not its cancel is wished."""
    step = claiming(database, runner, input, execution_id, heed_cancel=False)
    return await runner.run(step.name, input, step.work, cancellable=False)


async def _no_more_policies(_: Transaction, __: Row) -> dict[str, int]:
    return {}


def claiming(
    database: Database,
    runner: StepRunner,
    input: WorkflowInput,
    execution_id: str,
    *,
    heed_cancel: bool = True,
    begin: Callable[[Transaction, Row], Awaitable[dict[str, int]]] = _no_more_policies,
) -> Step:
    """The same as the first step of an activity that goes on to work.

    `begin` is done once, in the transaction of the first claim, and gives the policies that only this kind of run has.
    """

    async def work() -> None:
        async with database.begin(input.tenant) as transaction:
            row = await runs_store.claim(transaction, input.run_id, execution_id)
            if row is None:
                raise NotOurs(input.run_id)
            if row["execution_id"] is None:
                policies = {**POLICIES, **await begin(transaction, row)}
                started = RunEventDraft(type="run.started", data={"kind": row["kind"], "policies": policies})
                await run_event_log.append(transaction, input.run_id, [started])
        if row["kind"] == "ingest":
            runner.failpoint("ingest.claimed")
        if heed_cancel and row["cancel_requested_at"] is not None:
            raise CancelWished(input.run_id)

    return Step("claim", work, cancellable=False, sees_cancel=True)


async def end_run(database: Database, input: WorkflowInput, end: RunEnd) -> None:
    async with database.begin(input.tenant) as transaction:
        await run_ending.end(transaction, input.run_id, end)
