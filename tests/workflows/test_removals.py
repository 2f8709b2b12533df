"""RemoveDocument, RemoveSpace and RefreshAccess decide: what people deleted goes, whatever happens meanwhile."""

from __future__ import annotations

from datetime import timedelta

import pytest
from temporalio.testing import WorkflowEnvironment

from schemas.workflow_contracts import SEARCH_ATTRIBUTES, WorkflowEnd
from tests.workflows import removal_scenarios as scenarios
from tests.workflows.history_reading import activities_of, timers_s, virtual_seconds
from tests.workflows.scenario import Scenario, play

pytestmark = pytest.mark.asyncio(loop_scope="session")

EMPTIED = ["empty_indexes", "empty_blobs", "empty_rows", "finish_removal"]


async def test_a_removal_empties_each_store_after_the_ingests_are_closed(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.REMOVED)
    assert finished.activities.names_called() == ["claim_run", "close_ingests", *EMPTIED]
    assert finished.end == WorkflowEnd(state="succeeded")
    assert finished.details.splitlines()[0] == "**Remove document doc-1** · succeeded"


async def test_a_removal_looks_again_for_open_ingests_on_growing_timers(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.REMOVED_AFTER_INGESTS)
    assert timers_s(finished.histories[0]) == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5], abs=0.001)
    assert finished.activities.names_called() == ["claim_run", *["close_ingests"] * 9, *EMPTIED]


async def test_a_removal_waits_for_an_engine_without_end(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.REMOVAL_WAITS)
    assert virtual_seconds(finished.histories[0]) > timedelta(days=42).total_seconds()
    assert finished.activities.argument_of("show_waiting").until is None
    assert finished.end == WorkflowEnd(state="succeeded")


@pytest.mark.parametrize(
    "scenario",
    [scenarios.REMOVAL_REFUSES_CANCEL, scenarios.REMOVAL_REFUSES_OPERATOR],
    ids=lambda scenario: scenario.case,
)
async def test_nobody_can_cancel_a_removal(environment: WorkflowEnvironment, scenario: Scenario) -> None:
    finished = await play(environment, scenario)
    done = activities_of(finished.histories[0])
    assert done.count("empty_indexes") == 2
    assert done[-3:] == EMPTIED[1:]
    assert finished.end == WorkflowEnd(state="succeeded")


async def test_a_removal_that_cannot_empty_a_store_ends_failed(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.REMOVAL_FAILED)
    assert finished.activities.names_called()[-2:] == ["empty_blobs", "finish_removal"]
    end = finished.activities.argument_of("finish_removal").end
    assert (end.state, end.error["code"], end.error["detail"]) == ("failed", "internal", "a blob stayed")


async def test_a_space_goes_window_by_window_and_then_itself(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.SPACE_REMOVED)
    windows = ["bury_window", "bury_window"]
    assert finished.activities.names_called() == ["claim_run", *windows, "forget_space", "finish_removal"]
    assert finished.end == WorkflowEnd(state="succeeded", detail="57 documents")


async def test_the_removal_of_a_large_space_continues_as_new_and_still_holds_its_run(
    environment: WorkflowEnvironment,
) -> None:
    finished = await play(environment, scenarios.SPACE_CONTINUED)
    assert len(finished.histories) > 1
    claims = [argument.execution_id for name, argument in finished.activities.calls if name == "claim_run"]
    first = finished.histories[0].events[0].workflow_execution_started_event_attributes
    assert claims == [first.original_execution_run_id] * len(finished.histories)
    rounds = scenarios.ROUNDS_OVER_TWO_HISTORIES
    assert finished.activities.names_called().count("bury_window") == rounds + 1
    assert finished.end == WorkflowEnd(state="succeeded", detail=f"{rounds * 50} documents")
    assert finished.attribute(SEARCH_ATTRIBUTES.state) == "succeeded"


async def test_a_space_that_cannot_be_forgotten_ends_failed(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.SPACE_FAILED)
    assert finished.activities.argument_of("finish_removal").end.error["detail"] == "a row stayed"


async def test_readers_are_rewritten_and_the_run_ends(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.REFRESHED)
    assert finished.activities.names_called() == ["claim_run", "refresh_access", "finish_removal"]
    assert finished.end == WorkflowEnd(state="succeeded")


@pytest.mark.parametrize(
    ("scenario", "state"),
    [
        (scenarios.REFRESH_WAITS, "succeeded"),
        (scenarios.REFRESH_GONE, "cancelled"),
        (scenarios.REFRESH_FAILED, "failed"),
        (scenarios.REFRESH_CANCELLED, "cancelled"),
    ],
    ids=lambda value: value.case if isinstance(value, Scenario) else "",
)
async def test_a_refresh_always_records_its_end(
    environment: WorkflowEnvironment, scenario: Scenario, state: str
) -> None:
    finished = await play(environment, scenario)
    assert finished.activities.names_called()[-1] == "finish_removal"
    assert finished.activities.argument_of("finish_removal").end.state == state
    assert finished.end == WorkflowEnd(state=state)


@pytest.mark.parametrize(
    "scenario",
    [scenarios.REMOVAL_NOT_OURS, scenarios.SPACE_NOT_OURS, scenarios.REFRESH_NOT_OURS],
    ids=lambda scenario: scenario.contract.name,
)
async def test_an_execution_that_may_not_have_the_run_touches_nothing(
    environment: WorkflowEnvironment, scenario: Scenario
) -> None:
    finished = await play(environment, scenario)
    assert finished.activities.names_called() == ["claim_run"]
    assert finished.end == WorkflowEnd(state="not_ours")
