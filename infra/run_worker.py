"""The workers of both task queues, with the settings of invariant 6."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from importlib.metadata import version
from typing import Any

from temporalio.client import Client
from temporalio.worker import Worker

from infra.workflow_runner import sandbox
from schemas.settings import WorkSettings
from schemas.workflow_contracts import INGEST_QUEUE, INTERACTIVE_QUEUE
from workflows.agent_turn import AgentTurn
from workflows.answer_question import AnswerQuestion
from workflows.ask_approval import AskApproval
from workflows.ingest_document import IngestDocument
from workflows.refresh_access import RefreshAccess
from workflows.remove_document import RemoveDocument
from workflows.remove_space import RemoveSpace
from workflows.session import Session

WORKFLOWS: dict[str, list[type]] = {
    INGEST_QUEUE: [IngestDocument, RemoveDocument, RemoveSpace, RefreshAccess],
    INTERACTIVE_QUEUE: [AnswerQuestion, Session, AgentTurn, AskApproval],
}
STICKY_TIMEOUT = timedelta(seconds=1)
HEARTBEAT_THROTTLE = timedelta(seconds=1)
BUILD_ID = f"perdure-{version('perdure')}"
"""What Temporal's pages name a worker by. The SDK's default reads every module again to hash it, at each start."""


def build_workers(
    client: Client, activities: dict[str, Sequence[Callable[..., Any]]], settings: WorkSettings
) -> list[Worker]:
    return [build_worker(client, queue, WORKFLOWS[queue], activities[queue], settings) for queue in WORKFLOWS]


def build_worker(
    client: Client,
    queue: str,
    workflows: Sequence[type],
    activities: Sequence[Callable[..., Any]],
    settings: WorkSettings,
) -> Worker:
    return Worker(
        client,
        task_queue=queue,
        workflows=workflows,
        activities=activities,
        workflow_runner=sandbox(),
        build_id=BUILD_ID,
        max_cached_workflows=settings.cached_workflows,
        max_concurrent_activities=settings.ingest_slots if queue == INGEST_QUEUE else settings.worker_slots,
        sticky_queue_schedule_to_start_timeout=STICKY_TIMEOUT,
        max_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
        default_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
        graceful_shutdown_timeout=timedelta(seconds=settings.graceful_stop_s),
    )


async def run_workers(workers: Sequence[Worker], stop: asyncio.Event) -> None:
    """Runs until `stop` is set, then lets activities finish for `graceful_stop_s`; a worker that dies ends the others."""
    running = [asyncio.create_task(worker.run()) for worker in workers]
    stopping = asyncio.create_task(stop.wait())
    done, _ = await asyncio.wait([*running, stopping], return_when=asyncio.FIRST_COMPLETED)
    await asyncio.gather(*(worker.shutdown() for worker in workers), return_exceptions=True)
    await asyncio.gather(*running, return_exceptions=True)
    stopping.cancel()
    for task in done - {stopping}:
        task.result()
