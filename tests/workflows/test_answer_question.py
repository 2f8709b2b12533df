"""AnswerQuestion decides: passages first, then the answer, and an end that is always recorded."""

from __future__ import annotations

from dataclasses import replace

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.testing import WorkflowEnvironment

from schemas.workflow_contracts import SEARCH_ATTRIBUTES, WorkflowEnd
from tests.workflows import answer_scenarios as scenarios
from tests.workflows.history_reading import count, timers_s
from tests.workflows.scenario import Running, Scenario, play

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_an_answer_retrieves_generates_and_finishes_and_takes_no_round_for_the_claim(
    environment: WorkflowEnvironment,
) -> None:
    finished = await play(environment, scenarios.ANSWERED)
    assert finished.activities.names_called() == ["retrieve_passages", "generate_answer", "finish_answer"]
    assert finished.end == WorkflowEnd(state="succeeded")
    assert finished.details.splitlines()[2] == "- retrieve passages: 8 passages"


async def test_an_answer_shows_that_it_runs_from_its_start(environment: WorkflowEnvironment) -> None:
    seen: list[str] = []

    async def look(running: Running) -> None:
        await running.activities.called("generate_answer")
        seen.append(str((await running.shows("running")).id))
        await scenarios.cancel_during_generation(running)

    await play(environment, replace(scenarios.CANCELLED, meanwhile=look))
    assert seen


async def test_a_question_waits_for_an_engine_and_goes_on(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.ENGINE_RETURNS)
    assert timers_s(finished.histories[0]) == [1, 2]
    assert finished.end == WorkflowEnd(state="succeeded")


async def test_a_cancel_stops_the_generation_and_is_recorded(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.CANCELLED)
    assert count(finished.histories[0], EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED) == 1
    assert finished.activities.argument_of("finish_answer").end.state == "cancelled"
    assert finished.attribute(SEARCH_ATTRIBUTES.state) == "cancelled"


@pytest.mark.parametrize(
    ("scenario", "called"),
    [
        (scenarios.CANCELLED_BEFORE_GENERATION, ["retrieve_passages", "finish_answer"]),
        (scenarios.CANCELLED_WHILE_WAITING, ["retrieve_passages", "show_waiting", "finish_answer"]),
        (scenarios.OPERATOR_CANCELS, ["retrieve_passages", "generate_answer", "finish_answer"]),
    ],
    ids=lambda value: value.case if isinstance(value, Scenario) else "",
)
async def test_however_it_is_cancelled_nothing_more_is_generated(
    environment: WorkflowEnvironment, scenario: Scenario, called: list[str]
) -> None:
    finished = await play(environment, scenario)
    assert list(dict.fromkeys(finished.activities.names_called())) == called
    assert finished.end == WorkflowEnd(state="cancelled")


async def test_a_model_that_fails_for_good_ends_the_run_with_its_code(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.FAILED)
    end = finished.activities.argument_of("finish_answer").end
    assert (end.state, end.error["code"]) == ("failed", "model_unavailable")
    assert finished.end == WorkflowEnd(state="failed")


async def test_an_execution_that_may_not_have_the_run_generates_nothing(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.NOT_OURS)
    assert finished.activities.names_called() == ["retrieve_passages"]
    assert finished.end == WorkflowEnd(state="not_ours")
    assert finished.attribute(SEARCH_ATTRIBUTES.state) == "not_ours"
