"""Runs one workflow against scripted activities. The same scenarios are tested and recorded for the replay gate."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import WorkflowExecutionDescription, WorkflowFailureError, WorkflowHandle, WorkflowHistory
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.testing import WorkflowEnvironment

from infra.run_worker import WORKFLOWS, build_worker
from schemas.settings import WorkSettings
from schemas.workflow_contracts import (
    SEARCH_ATTRIBUTES,
    STATE_AT_START,
    WORKFLOW_TASK_TIMEOUT,
    EntityContract,
    WorkflowContract,
    WorkflowEnd,
)
from tests.workflows.history_reading import timers_s
from tests.workflows.scripted_activities import Script, ScriptedActivities

CACHE_OFF = WorkSettings(cached_workflows=0, graceful_stop_s=0)
"""Every workflow task replays the whole history: what is not deterministic fails at once."""


AT_START = TypedSearchAttributes(
    [SearchAttributePair(SearchAttributeKey.for_keyword(SEARCH_ATTRIBUTES.state), STATE_AT_START)]
)


@dataclass(frozen=True)
class Running:
    """A workflow under way, as `meanwhile` sees it."""

    handle: WorkflowHandle[Any, WorkflowEnd]
    activities: ScriptedActivities

    async def shows(self, state: str) -> WorkflowExecutionDescription:
        """Waits until the search attribute says so."""
        while True:
            description = await self.handle.describe()
            if attribute(description, SEARCH_ATTRIBUTES.state) == state:
                return description
            await asyncio.sleep(0.02)

    async def waits(self) -> None:
        """Waits until the workflow stands on a timer."""
        await self.shows("waiting")
        while not timers_s(await self.handle.fetch_history()):
            await asyncio.sleep(0.02)

    async def details(self) -> str:
        """What the Temporal UI shows as current details."""
        metadata = await self.handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
        return str(metadata.current_details)


Meanwhile = Callable[[Running], Awaitable[None]]


@dataclass(frozen=True)
class Scenario:
    """`case` names the recorded history. `fields` are the input's beyond tenant and run."""

    contract: WorkflowContract | EntityContract
    case: str
    fields: Mapping[str, Any]
    script: Script = field(default_factory=dict)
    meanwhile: Meanwhile | None = None
    skip_time: bool = True


@dataclass(frozen=True)
class Finished:
    """`end` is None and `failure` set when the execution failed; `histories` holds the chain, first execution first."""

    end: WorkflowEnd | None
    failure: BaseException | None
    activities: ScriptedActivities
    details: str
    description: WorkflowExecutionDescription
    histories: list[WorkflowHistory]

    def attribute(self, name: str) -> str | None:
        return attribute(self.description, name)


async def play(environment: WorkflowEnvironment, scenario: Scenario) -> Finished:
    """From the start to the end of one workflow, on a task queue of its own."""
    client, contract, queue = environment.client, scenario.contract, f"queue-{uuid.uuid4().hex[:8]}"
    activities = ScriptedActivities(scenario.script)
    worker = build_worker(client, queue, WORKFLOWS[contract.queue], activities.all(), CACHE_OFF)
    real_time: AbstractContextManager[None] = environment.with_time_skipping_disabled()
    async with worker:
        with nullcontext() if scenario.skip_time else real_time:
            handle = await client.start_workflow(
                contract.name,
                contract.input.model_validate({"tenant": "acme", "run_id": "run-1", **scenario.fields}),
                id=f"test-{uuid.uuid4().hex[:8]}",
                task_queue=queue,
                task_timeout=WORKFLOW_TASK_TIMEOUT,
                search_attributes=AT_START,
                result_type=WorkflowEnd,
            )
        running = Running(handle, activities)
        if scenario.meanwhile is not None:
            await scenario.meanwhile(running)
        end, failure = None, None
        try:
            end = await handle.result()
        except WorkflowFailureError as error:
            failure = error.cause
        details, description = await running.details(), await handle.describe()
    return Finished(end, failure, activities, details, description, await _chain(environment, handle))


async def _chain(environment: WorkflowEnvironment, handle: WorkflowHandle[Any, Any]) -> list[WorkflowHistory]:
    histories, execution = [], handle.first_execution_run_id
    while execution:
        history = await environment.client.get_workflow_handle(handle.id, run_id=execution).fetch_history()
        histories.append(history)
        execution = history.events[-1].workflow_execution_continued_as_new_event_attributes.new_execution_run_id
    return histories


def attribute(description: WorkflowExecutionDescription, name: str) -> str | None:
    return description.typed_search_attributes.get(SearchAttributeKey.for_keyword(name))
