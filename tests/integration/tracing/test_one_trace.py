"""One trace runs from the request that asked for a run through relay, workflow, activities, events and logs."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import pytest
import structlog
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from sqlalchemy import text
from temporalio.client import Client

from activities.removal_activities import RemovalActivities
from activities.run_activities import RunActivities
from activities.step_runner import StepRunner
from infra import telemetry
from infra.run_worker import WORKFLOWS, build_worker
from schemas.access import Actor
from schemas.identifiers import new_id, run_stream
from schemas.settings import WorkSettings
from schemas.workflow_contracts import REFRESH_ACCESS
from services.events.cancel_watch import CancelWatch
from services.events.delivery import OutboxDelivery
from services.gateways.temporal_gateway import TemporalGateway
from services.ingestion.access_refresh import AccessRefresh
from services.stores import runs_store
from services.stores.database import Database
from tests.workflows.scenario import CACHE_OFF
from tests.workflows.temporal_server import start_environment, tracer_provider

ACTOR = Actor(tenant="acme", user="ada")
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
REQUEST_SPAN_ID = "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE_ID}-{REQUEST_SPAN_ID}-01"


class LoggingRefresh:
    """Stands in for the work of the one activity that touches an index: it tells the log that it was done."""

    async def rewrite(self, tenant: str, document_id: str) -> None:
        structlog.get_logger("tests.tracing").info("readers_rewritten", document=document_id)


@dataclass(frozen=True)
class Traced:
    """A run that was asked for under TRACEPARENT, started by the relay's delivery and worked off with the cache off."""

    run_id: str
    spans: tuple[ReadableSpan, ...]
    database: Database
    logged: list[dict[str, Any]]


@pytest.fixture
def logging_as_in_the_product() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


@pytest.fixture
async def traced(database: Database, logging_as_in_the_product: None, capsys: pytest.CaptureFixture[str]) -> Traced:
    telemetry.configure_logs("info")
    exporter = InMemorySpanExporter()
    processor = SimpleSpanProcessor(exporter)
    tracer_provider().add_span_processor(processor)
    environment = await start_environment()
    try:
        run_id = await _work_off(environment.client, database)
    finally:
        await environment.shutdown()
        processor.shutdown()
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
    return Traced(run_id, exporter.get_finished_spans(), database, [json.loads(line) for line in lines])


async def _work_off(client: Client, database: Database) -> str:
    """The run's row is committed, the relay's delivery starts it outside of any request, and it ends."""
    run_id, workflow_id = new_id(), "access:acme:doc-1"
    async with database.begin(ACTOR.tenant) as transaction:
        await runs_store.create(
            transaction,
            REFRESH_ACCESS,
            run_id=run_id,
            workflow_id=workflow_id,
            actor=ACTOR,
            input_ref={"document_id": "doc-1"},
            traceparent=TRACEPARENT,
        )
    runner = StepRunner(database, CancelWatch(database), WorkSettings(), lambda name: None)
    runs = RunActivities(database, runner)
    removal = RemovalActivities(
        database,
        runner,
        removal=cast(Any, None),
        space_removal=cast(Any, None),
        access_refresh=cast(AccessRefresh, LoggingRefresh()),
    )
    activities: list[Callable[..., Any]] = [runs.claim, removal.refresh_access, removal.finish]
    queue = REFRESH_ACCESS.queue
    delivery = OutboxDelivery(database, TemporalGateway(client, eager_start=False), cast(Any, None))
    async with build_worker(client, queue, WORKFLOWS[queue], activities, CACHE_OFF):
        await delivery.deliver_head(runs_store.TEMPORAL, run_stream(run_id))
        assert (await client.get_workflow_handle(workflow_id).result())["state"] == "succeeded"
    return run_id


async def test_every_span_from_the_start_to_the_last_activity_is_of_the_requests_trace(traced: Traced) -> None:
    assert traced.spans
    assert {f"{span.context.trace_id:032x}" for span in traced.spans} == {TRACE_ID}
    by_id = {span.context.span_id: span for span in traced.spans}
    without_parent_here = [span for span in traced.spans if span.parent is None or span.parent.span_id not in by_id]
    assert [span.name for span in without_parent_here] == ["StartWorkflow:RefreshAccess"]
    start = without_parent_here[0]
    assert start.parent is not None
    assert f"{start.parent.span_id:016x}" == REQUEST_SPAN_ID


async def test_no_span_is_doubled_although_every_workflow_task_replays_the_history(traced: Traced) -> None:
    counted = Counter(span.name for span in traced.spans)
    of_activities = {
        f"{what}:{name}"
        for what in ("StartActivity", "RunActivity")
        for name in ("claim_run", "refresh_access", "finish_removal")
    }
    assert set(counted) == {"StartWorkflow:RefreshAccess", "RunWorkflow:RefreshAccess", *of_activities}
    assert set(counted.values()) == {1}


async def test_what_an_activity_logs_carries_run_tenant_step_and_trace(traced: Traced) -> None:
    line = next(line for line in traced.logged if line["event"] == "readers_rewritten")
    assert (line["run"], line["tenant"], line["step"]) == (traced.run_id, "acme", "refresh_access")
    assert line["trace_id"] == TRACE_ID


async def test_the_runs_events_carry_its_trace(traced: Traced) -> None:
    async with traced.database.begin("acme") as transaction:
        query = text("SELECT type, traceparent FROM domain_events WHERE stream = :stream ORDER BY stream_version")
        found = await transaction.all(query, {"stream": run_stream(traced.run_id)})
    assert [row["type"] for row in found] == ["run.queued", "run.started", "run.ended"]
    assert {row["traceparent"] for row in found} == {TRACEPARENT}
