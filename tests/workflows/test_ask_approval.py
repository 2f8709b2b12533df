"""AskApproval waits: for a decision, for a withdrawal, or until nobody has decided for a week."""

from __future__ import annotations

from dataclasses import replace

import pytest
from temporalio.testing import WorkflowEnvironment

from schemas.workflow_contracts import SEARCH_ATTRIBUTES, WorkflowEnd
from tests.workflows import agent_scenarios as scenarios
from tests.workflows.history_reading import virtual_seconds
from tests.workflows.scenario import Running, play

pytestmark = pytest.mark.asyncio(loop_scope="session")
DAY_S = 86_400


async def test_a_decision_ends_the_wait_without_anything_being_written_about_it(
    environment: WorkflowEnvironment,
) -> None:
    finished = await play(environment, scenarios.DECIDED)
    outcomes = [argument.outcome for _, argument in finished.activities.calls]
    assert outcomes == [None, None]
    assert finished.end == WorkflowEnd(state="succeeded", detail="approved")


async def test_after_seven_days_and_two_reminders_a_request_expires(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.NOBODY)
    names = finished.activities.names_called()
    assert names == ["look_at_approval", "remind_of_approval", "remind_of_approval", "look_at_approval"]
    assert finished.activities.argument_of("look_at_approval").outcome == "expired"
    assert 6.9 * DAY_S < virtual_seconds(finished.histories[0]) < 7.1 * DAY_S
    assert finished.end == WorkflowEnd(state="expired", detail="expired")


async def test_a_cancel_withdraws_the_request(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.WITHDRAWN)
    assert finished.activities.argument_of("look_at_approval").outcome == "cancelled"
    assert finished.end == WorkflowEnd(state="cancelled", detail="cancelled")


async def test_a_waiting_request_says_in_words_what_it_waits_for(environment: WorkflowEnvironment) -> None:
    seen: list[str] = []

    async def look(running: Running) -> None:
        await running.shows("waiting")
        seen.append(await running.details())
        await scenarios.wake(running)

    finished = await play(environment, replace(scenarios.DECIDED, meanwhile=look))
    assert seen[0].splitlines()[0] == "**Approval of write_note · approval-1** · waiting for approval"
    assert finished.attribute(SEARCH_ATTRIBUTES.state) == "succeeded"


async def test_an_execution_that_may_not_have_the_request_asks_nobody(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.REQUEST_NOT_OURS)
    assert finished.activities.names_called() == ["look_at_approval"]
    assert finished.end == WorkflowEnd(state="not_ours")
