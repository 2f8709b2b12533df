"""Session works off messages, one turn at a time, and sleeps when there are none."""

from __future__ import annotations

import pytest
from temporalio.testing import WorkflowEnvironment

from schemas.workflow_contracts import WorkflowEnd
from tests.workflows import agent_scenarios as scenarios
from tests.workflows.scenario import play

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_message_is_a_turn_and_then_the_session_sleeps_and_ends(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.ONE_MESSAGE)
    assert finished.activities.names_called() == ["next_turn", "think", "finish_turn", "next_turn"]
    thought = finished.activities.argument_of("think")
    assert (thought.run_id, thought.session_id) == ("run-7", "session-1")
    assert finished.end == WorkflowEnd(state="idle")


async def test_a_sleeping_session_is_woken_by_a_message(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.WOKEN)
    assert finished.activities.names_called() == ["next_turn", "next_turn", "think", "finish_turn", "next_turn"]


async def test_a_turn_that_was_chosen_before_is_run_and_one_that_is_not_ours_is_looked_at_again(
    environment: WorkflowEnvironment,
) -> None:
    finished = await play(environment, scenarios.ADOPTED)
    assert finished.activities.names_called() == [
        "next_turn",
        "think",
        "next_turn",
        "think",
        "finish_turn",
        "next_turn",
    ]


async def test_a_turn_that_leaves_no_end_is_recorded_as_lost_and_the_session_goes_on(
    environment: WorkflowEnvironment,
) -> None:
    finished = await play(environment, scenarios.TURN_LOST)
    assert finished.activities.names_called() == ["next_turn", "think", "finish_turn", "fail_turn", "next_turn"]
    assert finished.activities.argument_of("fail_turn").run_id == "run-7"
