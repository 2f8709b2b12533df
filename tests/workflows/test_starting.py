"""A run's workflow as the gateway starts it: found again by its memo, listed by its attributes, one run to an id."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
from temporalio.testing import WorkflowEnvironment

from infra.run_worker import WORKFLOWS, build_worker
from schemas.errors import PermanentFailure
from schemas.workflow_contracts import ANSWER_QUESTION, CANCEL_SIGNAL, SEARCH_ATTRIBUTES, WorkflowEnd
from services.gateways.temporal_gateway import TemporalGateway, WorkflowStart
from tests.workflows.scenario import CACHE_OFF, attribute
from tests.workflows.scripted_activities import ScriptedActivities, until_cancelled

pytestmark = pytest.mark.asyncio(loop_scope="session")


def a_start() -> WorkflowStart:
    run = uuid.uuid4().hex
    return WorkflowStart(
        run_id=run,
        tenant="acme",
        contract=ANSWER_QUESTION.name,
        workflow_id=f"answer:acme:{run}",
        input_ref={"answer_id": "answer-1", "traceparent": None},
        actor="user-1",
        space_id="space-1",
        summary="answer answer-1",
    )


@asynccontextmanager
async def answering(environment: WorkflowEnvironment) -> AsyncIterator[TemporalGateway]:
    """A worker on the real queue, whose generations last until they are cancelled."""
    activities = ScriptedActivities({"answer_question": iter(lambda: until_cancelled, None)})
    queue = ANSWER_QUESTION.queue
    async with build_worker(environment.client, queue, WORKFLOWS[queue], activities.all(), CACHE_OFF):
        yield TemporalGateway(environment.client, eager_start=False)


async def test_a_start_says_whose_work_it_is_in_memo_attributes_priority_and_summary(
    environment: WorkflowEnvironment,
) -> None:
    start = a_start()
    async with answering(environment) as gateway:
        await gateway.start(start)
        handle = environment.client.get_workflow_handle(start.workflow_id, result_type=WorkflowEnd)
        history, description = await handle.fetch_history(), await handle.describe()
        await gateway.signal(start.workflow_id, CANCEL_SIGNAL, {"by": "user-1"})
        assert await handle.result() == WorkflowEnd(state="cancelled")
    started = history.events[0].workflow_execution_started_event_attributes
    assert started.workflow_task_timeout.ToTimedelta() == timedelta(seconds=2)
    assert (started.priority.priority_key, started.priority.fairness_key) == (ANSWER_QUESTION.priority, "acme")
    assert not started.HasField("retry_policy")
    assert await description.static_summary() == "answer answer-1"
    names = (SEARCH_ATTRIBUTES.tenant, SEARCH_ATTRIBUTES.kind, SEARCH_ATTRIBUTES.actor, SEARCH_ATTRIBUTES.space)
    assert [attribute(description, name) for name in names] == ["acme", "answer", "user-1", "space-1"]


async def test_an_execution_is_found_again_by_the_run_in_its_memo(environment: WorkflowEnvironment) -> None:
    start = a_start()
    async with answering(environment) as gateway:
        assert await gateway.describe(start.workflow_id) is None
        await gateway.start(start)
        view = await gateway.describe(start.workflow_id)
        assert view is not None
        assert (view.run_id, view.closed) == (start.run_id, False)
        await gateway.signal(start.workflow_id, CANCEL_SIGNAL, {"by": None})
        await environment.client.get_workflow_handle(start.workflow_id).result()
        closed = await gateway.describe(start.workflow_id)
    assert closed is not None
    assert (closed.run_id, closed.closed, closed.execution_id) == (start.run_id, True, view.execution_id)


async def test_a_start_delivered_twice_is_one_execution_and_another_runs_start_waits(
    environment: WorkflowEnvironment,
) -> None:
    start = a_start()
    async with answering(environment) as gateway:
        await gateway.start(start)
        first = await gateway.describe(start.workflow_id)
        await gateway.start(start)
        assert await gateway.describe(start.workflow_id) == first
        with pytest.raises(PermanentFailure, match="runs for run"):
            await gateway.start(replace(start, run_id="another"))
        await gateway.signal(start.workflow_id, CANCEL_SIGNAL, {"by": None})
        await environment.client.get_workflow_handle(start.workflow_id).result()


async def test_a_signal_to_nobody_counts_as_delivered(environment: WorkflowEnvironment) -> None:
    gateway = TemporalGateway(environment.client, eager_start=False)
    assert not await gateway.signal("answer:acme:nobody", CANCEL_SIGNAL, {"by": None})
