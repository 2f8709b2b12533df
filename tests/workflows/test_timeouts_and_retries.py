"""The values of invariant 6, as the server was told them: a lost worker is noticed within seconds, Temporal alone retries."""

from __future__ import annotations

from datetime import timedelta

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.testing import WorkflowEnvironment

from infra.run_worker import WORKFLOWS, build_worker
from schemas.settings import WorkSettings
from schemas.workflow_contracts import INGEST_QUEUE
from tests.workflows import answer_scenarios, ingest_scenarios, removal_scenarios
from tests.workflows.history_reading import count, scheduled
from tests.workflows.scenario import Scenario, play
from tests.workflows.scripted_activities import ScriptedActivities

pytestmark = pytest.mark.asyncio(loop_scope="session")

LONGEST_STAGE = timedelta(hours=6)


@pytest.mark.parametrize(
    "scenario",
    [
        ingest_scenarios.CANCELLED_IN_ACTIVITY,
        ingest_scenarios.ENGINE_RETURNS,
        removal_scenarios.REMOVED,
        removal_scenarios.SPACE_REMOVED,
        removal_scenarios.REFRESHED,
        answer_scenarios.ANSWERED,
    ],
    ids=lambda scenario: f"{scenario.contract.name}/{scenario.case}",
)
async def test_every_activity_beats_is_bounded_and_is_retried_without_counting_attempts(
    environment: WorkflowEnvironment, scenario: Scenario
) -> None:
    finished = await play(environment, scenario)
    told = [attributes for history in finished.histories for attributes in scheduled(history)]
    assert {attributes.heartbeat_timeout.ToTimedelta() for attributes in told} == {timedelta(seconds=2)}
    assert {attributes.retry_policy.maximum_attempts for attributes in told} == {0}
    assert {attributes.retry_policy.initial_interval.ToTimedelta() for attributes in told} == {timedelta(seconds=0.2)}
    assert max(attributes.start_to_close_timeout.ToTimedelta() for attributes in told) <= LONGEST_STAGE
    assert not any(attributes.schedule_to_close_timeout.ToTimedelta() for attributes in told)


async def test_no_workflow_task_fails_on_the_way_to_any_of_the_ends(environment: WorkflowEnvironment) -> None:
    """A workflow task that fails is how a workflow that is not deterministic shows."""
    for scenario in (ingest_scenarios.CANCELLED_IN_ACTIVITY, ingest_scenarios.FAILED_FINISH):
        finished = await play(environment, scenario)
        assert [count(each, EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED) for each in finished.histories] == [0]


async def test_a_worker_hands_on_its_work_and_its_heartbeats_within_a_second(environment: WorkflowEnvironment) -> None:
    settings = WorkSettings(worker_slots=7, cached_workflows=3, graceful_stop_s=4)
    activities = ScriptedActivities({}).all()
    worker = build_worker(environment.client, "options", WORKFLOWS[INGEST_QUEUE], activities, settings)
    config = worker.config()
    assert config["sticky_queue_schedule_to_start_timeout"] == timedelta(seconds=1)
    assert config["max_heartbeat_throttle_interval"] == timedelta(seconds=1)
    assert config["default_heartbeat_throttle_interval"] == timedelta(seconds=1)
    assert config["graceful_shutdown_timeout"] == timedelta(seconds=4)
    assert (config["max_concurrent_activities"], config["max_cached_workflows"]) == (7, 3)
