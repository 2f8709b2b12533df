"""AgentTurn decides: think, call, ask, and end only when nobody has said anything more."""

from __future__ import annotations

import pytest
from temporalio.testing import WorkflowEnvironment

from schemas.workflow_contracts import SEARCH_ATTRIBUTES, WorkflowEnd
from tests.workflows import agent_scenarios as scenarios
from tests.workflows.history_reading import timers_s
from tests.workflows.scenario import Finished, Scenario, play

pytestmark = pytest.mark.asyncio(loop_scope="session")


def iterations(finished: Finished) -> list[int]:
    return [argument.iteration for name, argument in finished.activities.calls if name == "think"]


def called_steps(finished: Finished) -> list[str]:
    return [argument.step for name, argument in finished.activities.calls if name == "call_tool"]


async def test_a_turn_that_only_speaks_is_one_thought_and_an_end(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.SPOKEN)
    assert finished.activities.names_called() == ["think", "finish_turn"]
    assert finished.end == WorkflowEnd(state="succeeded")


async def test_calls_that_stand_alone_are_made_in_the_order_the_model_gave_them(
    environment: WorkflowEnvironment,
) -> None:
    finished = await play(environment, scenarios.CALLED)
    assert called_steps(finished) == ["call:1.0", "call:1.1"]
    assert iterations(finished) == [1, 2]
    assert finished.end == WorkflowEnd(state="succeeded")


async def test_calls_that_may_stand_beside_others_are_all_made_before_the_next_thought(
    environment: WorkflowEnvironment,
) -> None:
    finished = await play(environment, scenarios.BESIDE)
    assert sorted(called_steps(finished)) == ["call:1.0", "call:1.1", "call:1.2"]
    assert finished.activities.names_called()[-2:] == ["think", "finish_turn"]


async def test_what_follows_a_call_that_stands_alone_waits_for_it(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.IN_ORDER)
    steps = called_steps(finished)
    assert steps[:2] == ["call:1.0", "call:1.9"]
    assert sorted(steps[2:]) == ["call:1.1", "call:1.2"]


async def test_a_call_that_is_asked_for_is_made_after_its_request_is_over(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.APPROVED)
    assert finished.activities.names_called() == ["think", "look_at_approval", "call_tool", "think", "finish_turn"]
    asked = finished.activities.argument_of("look_at_approval")
    assert (asked.approval_id, asked.run_id) == ("approval-1", "run-2")
    assert finished.activities.argument_of("call_tool").approval_id == "approval-1"


async def test_a_call_whose_request_was_lost_is_asked_for_again_and_never_made_undecided(
    environment: WorkflowEnvironment,
) -> None:
    finished = await play(environment, scenarios.UNDECIDED)
    assert finished.activities.names_called().count("look_at_approval") == 2
    assert called_steps(finished) == ["call:1.0", "call:1.0"]
    assert finished.end == WorkflowEnd(state="succeeded")


async def test_work_delegated_is_a_turn_of_its_own_and_its_outcome_is_taken_when_that_has_ended(
    environment: WorkflowEnvironment,
) -> None:
    finished = await play(environment, scenarios.HANDED_ON)
    runs = [(name, argument.run_id) for name, argument in finished.activities.calls]
    assert runs == [
        ("think", "run-1"), ("think", "run-3"), ("finish_turn", "run-3"), ("call_tool", "run-1"), ("think", "run-1"),
        ("finish_turn", "run-1"),
    ]  # fmt: skip


async def test_a_turn_below_that_leaves_no_end_is_recorded_as_lost(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.HANDED_ON_AND_LOST)
    assert finished.activities.argument_of("fail_turn").run_id == "run-3"
    assert finished.end == WorkflowEnd(state="succeeded")


async def test_a_word_that_comes_while_the_turn_ends_is_thought_about(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.STEERED)
    assert finished.activities.names_called() == ["think", "finish_turn", "think", "finish_turn"]
    assert iterations(finished) == [1, 2]


@pytest.mark.parametrize(
    "scenario",
    [scenarios.STOPPED_THINKING, scenarios.STOPPED_CALLING, scenarios.STOPPED_ASKING],
    ids=lambda scenario: scenario.case,
)
async def test_wherever_a_turn_is_stopped_it_ends_cancelled_and_thinks_no_more(
    environment: WorkflowEnvironment, scenario: Scenario
) -> None:
    finished = await play(environment, scenario)
    assert iterations(finished) == [1]
    assert finished.activities.argument_of("finish_turn").end.state == "cancelled"
    assert finished.end == WorkflowEnd(state="cancelled")


async def test_a_turn_over_its_budget_fails_with_that_and_is_finished(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.OUT_OF_BUDGET)
    assert finished.activities.argument_of("finish_turn").end.error["code"] == "budget_exceeded"
    assert finished.end == WorkflowEnd(state="failed")


async def test_an_execution_that_may_not_have_the_turn_does_nothing(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.TURN_NOT_OURS)
    assert finished.activities.names_called() == ["think"]
    assert finished.attribute(SEARCH_ATTRIBUTES.state) == "not_ours"


async def test_a_turn_waits_for_an_engine_and_thinks_the_same_thought_again(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.TURN_WAITS)
    assert iterations(finished) == [1, 1]
    assert timers_s(finished.histories[0]) == [1]
