"""AnswerQuestion decides: one step that answers, and an end that is always recorded."""

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


async def test_an_answer_takes_one_step_and_an_end(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.ANSWERED)
    assert finished.activities.names_called() == ["answer_question", "finish_answer"]
    assert finished.end == WorkflowEnd(state="succeeded")
    assert finished.details.splitlines()[2] == "- answer: 8 passages"


async def test_an_answer_shows_that_it_runs_from_its_start_and_writes_nothing_for_that(
    environment: WorkflowEnvironment,
) -> None:
    seen: list[str] = []

    async def look(running: Running) -> None:
        await running.activities.called("answer_question")
        await running.shows("running")
        seen.append((await running.details()).splitlines()[0])
        await scenarios.cancel_during_answer(running)

    finished = await play(environment, replace(scenarios.CANCELLED, meanwhile=look))
    assert seen == ["**Answer answer-1** · running"]
    assert count(finished.histories[0], EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES) == 1, "its end"


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
        (scenarios.CANCEL_SEEN_BY_ACTIVITY, ["answer_question", "finish_answer"]),
        (scenarios.CANCELLED_WHILE_WAITING, ["answer_question", "show_waiting", "finish_answer"]),
        (scenarios.OPERATOR_CANCELS, ["answer_question", "finish_answer"]),
    ],
    ids=lambda value: value.case if isinstance(value, Scenario) else "",
)
async def test_however_it_is_cancelled_nothing_more_is_done(
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
    assert finished.activities.names_called() == ["answer_question"]
    assert finished.end == WorkflowEnd(state="not_ours")
    assert finished.attribute(SEARCH_ATTRIBUTES.state) == "not_ours"
