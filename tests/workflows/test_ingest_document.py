"""IngestDocument decides: which stages run, what a failure, a wait and a cancel lead to, and what people see of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.exceptions import ApplicationError
from temporalio.testing import WorkflowEnvironment

from schemas.workflow_contracts import SEARCH_ATTRIBUTES, WorkflowEnd
from tests.workflows import ingest_scenarios as scenarios
from tests.workflows.history_reading import activities_of, count, timers_s, virtual_seconds
from tests.workflows.scenario import Running, Scenario, attribute, play

pytestmark = pytest.mark.asyncio(loop_scope="session")

READ_TO_CHUNK = ["read_document", "chunk_document"]
PUBLISH_TO_END = ["publish_version", "finish_ingest"]


async def test_the_steps_run_in_order_and_each_once(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.COMPLETE)
    assert finished.activities.names_called() == [*READ_TO_CHUNK, "embed_chunks", *PUBLISH_TO_END]
    assert finished.end == WorkflowEnd(state="succeeded", detail="done")
    told = finished.activities.argument_of("finish_ingest")
    assert (told.end.state, told.superseded, told.version) == ("succeeded", False, 3)


async def test_the_run_is_claimed_for_this_execution(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.COMPLETE)
    claim = finished.activities.argument_of("read_document")
    assert (claim.execution_id, claim.run_id) == (finished.description.run_id, "run-1")


@pytest.mark.parametrize(
    ("scenario", "stages"),
    [
        (scenarios.FROM_EMBEDDING, ["embed_chunks", *PUBLISH_TO_END]),
        (scenarios.FROM_INDEXING, PUBLISH_TO_END),
        (scenarios.FROM_UNKNOWN_STAGE, ["chunk_document", "embed_chunks", *PUBLISH_TO_END]),
    ],
    ids=lambda value: value.case if isinstance(value, Scenario) else "",
)
async def test_a_retry_claims_and_leaves_out_the_stages_before_the_one_it_starts_at(
    environment: WorkflowEnvironment, scenario: Scenario, stages: list[str]
) -> None:
    finished = await play(environment, scenario)
    assert finished.activities.names_called() == ["read_document", *stages]


@pytest.mark.parametrize(
    ("scenario", "called"),
    [
        (scenarios.NOT_OURS, ["read_document"]),
        (scenarios.NOT_OURS_AND_CANCELLED, ["read_document", "discard_version"]),
    ],
    ids=lambda value: value.case if isinstance(value, Scenario) else "",
)
async def test_an_execution_that_may_not_have_the_run_ends_nothing(
    environment: WorkflowEnvironment, scenario: Scenario, called: list[str]
) -> None:
    finished = await play(environment, scenario)
    assert finished.activities.names_called() == called
    assert finished.end == WorkflowEnd(state="not_ours")
    assert finished.attribute(SEARCH_ATTRIBUTES.state) == "not_ours"


async def test_an_engine_that_is_down_is_waited_for_on_timers_that_double_up_to_five_minutes(
    environment: WorkflowEnvironment,
) -> None:
    finished = await play(environment, scenarios.ENGINE_RETURNS)
    assert timers_s(finished.histories[0]) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]
    assert finished.end == WorkflowEnd(state="succeeded", detail="done")


async def test_a_wait_is_told_once_with_its_deadline_and_ends_with_going_on(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.ENGINE_RETURNS)
    called = finished.activities.names_called()
    assert (called.count("show_waiting"), called.count("show_resumed")) == (1, 1)
    assert called.index("show_waiting") < called.index("show_resumed") < called.index("finish_ingest")
    told = finished.activities.argument_of("show_waiting")
    assert told.waiting_for == "qdrant"
    assert told.until is not None


async def test_a_second_engine_that_goes_is_told_too(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.ANOTHER_ENGINE_GOES)
    told = [argument.waiting_for for name, argument in finished.activities.calls if name == "show_waiting"]
    assert told == ["qdrant", "tantivy"]


async def test_nothing_is_written_of_a_wait_for_the_database_itself(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.POSTGRES_RETURNS)
    assert "show_waiting" not in finished.activities.names_called()
    assert finished.end == WorkflowEnd(state="succeeded", detail="done")


async def test_a_wait_that_cannot_be_shown_is_still_waited_out(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.SHOWING_FAILS)
    assert finished.end == WorkflowEnd(state="succeeded", detail="done")


async def test_an_ingest_gives_up_on_an_engine_after_a_day(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.ENGINE_STAYS_AWAY)
    error = finished.activities.argument_of("finish_ingest").end.error
    assert (error["code"], error["stage"], error["retryable"]) == ("engine_down", "indexing", True)
    assert finished.activities.names_called().count("publish_version") == 5  # at 23 hours it still waited
    assert virtual_seconds(finished.histories[0]) >= timedelta(hours=24).total_seconds()
    assert finished.end is not None
    assert finished.end.state == "failed"


async def test_a_wake_ends_the_wait(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.WOKEN)
    assert count(finished.histories[0], EventType.EVENT_TYPE_TIMER_FIRED) == 1
    assert count(finished.histories[0], EventType.EVENT_TYPE_TIMER_CANCELED) == 1


async def test_a_cancel_stops_the_running_stage_and_leaves_no_debris(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.CANCELLED_IN_ACTIVITY)
    called = finished.activities.names_called()
    assert called == ["read_document", "discard_version", "finish_ingest"]
    assert finished.activities.argument_of("discard_version").drop_chunks
    assert count(finished.histories[0], EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED) == 1
    assert finished.activities.argument_of("finish_ingest").end.state == "cancelled"
    assert finished.end == WorkflowEnd(state="cancelled", detail="cancelled")


async def test_a_cancel_during_a_wait_acts_without_waiting_for_the_timer(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.CANCELLED_WHILE_WAITING)
    history = finished.histories[0]
    fired, started = count(history, EventType.EVENT_TYPE_TIMER_FIRED), len(timers_s(history))
    assert fired == started - 1
    assert activities_of(history)[-2:] == ["discard_version", "finish_ingest"]
    assert finished.end == WorkflowEnd(state="cancelled", detail="cancelled")


async def test_a_cancel_that_the_activity_saw_first_ends_the_same_way(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.CANCEL_SEEN_BY_ACTIVITY)
    assert finished.activities.names_called()[-2:] == ["discard_version", "finish_ingest"]
    assert finished.end == WorkflowEnd(state="cancelled", detail="cancelled")


@pytest.mark.parametrize(
    "scenario",
    [scenarios.OPERATOR_CANCELS_ACTIVITY, scenarios.OPERATOR_CANCELS_WAIT],
    ids=lambda scenario: scenario.case,
)
async def test_an_operators_cancel_of_the_execution_is_cleaned_up_after_and_recorded(
    environment: WorkflowEnvironment, scenario: Scenario
) -> None:
    finished = await play(environment, scenario)
    assert finished.activities.names_called()[-2:] == ["discard_version", "finish_ingest"]
    assert finished.end == WorkflowEnd(state="cancelled", detail="cancelled")


async def test_a_version_that_a_newer_one_overtook_leaves_no_debris_and_ends_superseded(
    environment: WorkflowEnvironment,
) -> None:
    finished = await play(environment, scenarios.SUPERSEDED)
    assert finished.activities.names_called()[-3:] == ["publish_version", "discard_version", "finish_ingest"]
    assert not finished.activities.argument_of("discard_version").drop_chunks
    told = finished.activities.argument_of("finish_ingest")
    assert (told.superseded, told.end.state) == (True, "succeeded")


async def test_the_ingest_of_a_removed_document_stops_and_leaves_the_stores_to_the_removal(
    environment: WorkflowEnvironment,
) -> None:
    finished = await play(environment, scenarios.GONE)
    assert finished.activities.names_called()[-2:] == ["embed_chunks", "finish_ingest"]
    assert finished.activities.argument_of("finish_ingest").end.state == "cancelled"


async def test_a_permanent_failure_ends_the_run_with_code_detail_and_stage(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.FAILED)
    assert finished.activities.names_called()[-3:] == ["read_document", "discard_version", "finish_ingest"]
    end = finished.activities.argument_of("finish_ingest").end
    assert end.state == "failed"
    assert end.error == {
        "code": "encrypted", "detail": "The file needs a password", "retryable": False, "stage": "parsing",
    }  # fmt: skip


async def test_a_failure_names_the_stage_of_its_own_step_not_of_the_activitys_first(
    environment: WorkflowEnvironment,
) -> None:
    finished = await play(environment, scenarios.FAILED_WHILE_ENRICHING)
    assert finished.activities.argument_of("finish_ingest").end.error == {
        "code": "internal", "detail": "no word came", "retryable": False, "stage": "enriching",
    }  # fmt: skip


async def test_a_failed_clean_up_does_not_hide_what_failed_first(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.FAILED_CLEAN_UP)
    assert finished.activities.argument_of("finish_ingest").end.error["code"] == "corrupt"


async def test_an_end_that_cannot_be_written_closes_the_execution_so_that_the_reconciler_records_it(
    environment: WorkflowEnvironment,
) -> None:
    finished = await play(environment, scenarios.FAILED_FINISH)
    assert isinstance(finished.failure, ApplicationError)
    assert (finished.failure.type, finished.failure.message) == ("internal", "the end is not written")


async def test_a_failure_that_passes_is_tried_again_by_temporal_alone(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.PASSING_FAILURES)
    assert finished.activities.names_called().count("embed_chunks") == 3
    assert activities_of(finished.histories[0]).count("embed_chunks") == 1
    assert finished.end == WorkflowEnd(state="succeeded", detail="done")


async def test_a_result_too_big_for_a_history_fails_the_run_and_says_so(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.OVERSIZE_RESULT)
    assert finished.activities.names_called().count("read_document") == 1
    error = finished.activities.argument_of("finish_ingest").end.error
    assert "over 64000: pass a reference" in error["detail"]


async def test_the_details_tell_each_step_and_what_it_counted(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.COMPLETE)
    head, _, *lines = finished.details.splitlines()
    assert head == "**Ingest document doc-1 v3** · succeeded"
    assert lines[2] == "- embed: 4 embedded, 20 chunks"
    assert finished.attribute(SEARCH_ATTRIBUTES.state) == "succeeded"
    assert finished.attribute(SEARCH_ATTRIBUTES.waiting_for) is None


async def test_what_is_waited_for_shows_while_it_is_waited_for(environment: WorkflowEnvironment) -> None:
    seen: dict[str, str | None] = {}

    async def look(running: Running) -> None:
        description = await running.shows("waiting")
        seen["for"] = attribute(description, SEARCH_ATTRIBUTES.waiting_for)
        seen["details"] = (await running.details()).splitlines()[0]
        await scenarios.cancel_while_waiting(running)

    await play(environment, replace(scenarios.CANCELLED_WHILE_WAITING, meanwhile=look))
    assert seen == {"for": "qdrant", "details": "**Ingest document doc-1 v3** · waiting for qdrant"}
