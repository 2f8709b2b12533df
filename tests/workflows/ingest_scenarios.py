"""What can happen to IngestDocument."""

from __future__ import annotations

from datetime import timedelta
from itertools import repeat

from temporalio.exceptions import ApplicationError

from activities.failure_mapping import permanent, retry
from schemas.errors import TransientFailure
from schemas.workflow_contracts import CANCEL_SIGNAL, INGEST_DOCUMENT, WAKE_SIGNAL, CancelRequest, StepResult
from tests.workflows.scenario import Running, Scenario
from tests.workflows.scripted_activities import until_cancelled

FIELDS = {"document_id": "doc-1", "version": 3}
QDRANT_AWAY = StepResult(status="engine_down", engine="qdrant", detail="Qdrant does not answer")
POSTGRES_AWAY = StepResult(status="engine_down", engine="postgres", detail="Postgres does not answer")


def tried_again_after(hours: float) -> Exception:
    """Lets hours of the workflow's clock pass: a retry's delay is skipped like any timer."""
    return ApplicationError("later", type="later", next_retry_delay=timedelta(hours=hours))


async def cancel_during_reading(running: Running) -> None:
    await running.activities.called("read_document")
    await running.handle.signal(CANCEL_SIGNAL, CancelRequest(by="user-1"))


async def cancel_while_waiting(running: Running) -> None:
    await running.waits()
    await running.handle.signal(CANCEL_SIGNAL, CancelRequest(by="user-1"))


async def wake_while_waiting(running: Running) -> None:
    await running.waits()
    await running.handle.signal(WAKE_SIGNAL)


async def operator_cancels_reading(running: Running) -> None:
    await running.activities.called("read_document")
    await running.handle.cancel(reason="the operator stops it")


async def operator_cancels_while_waiting(running: Running) -> None:
    await running.waits()
    await running.handle.cancel(reason="the operator stops it")


COMPLETE = Scenario(
    INGEST_DOCUMENT, "complete", FIELDS, {"embed_chunks": [StepResult(counts={"embedded": 4, "chunks": 20})]}
)
FROM_EMBEDDING = Scenario(INGEST_DOCUMENT, "from_embedding", {**FIELDS, "from_stage": "embedding"})
FROM_INDEXING = Scenario(INGEST_DOCUMENT, "from_indexing", {**FIELDS, "from_stage": "indexing"})
FROM_UNKNOWN_STAGE = Scenario(INGEST_DOCUMENT, "from_unknown_stage", {**FIELDS, "from_stage": "a later release's"})
ENGINE_RETURNS = Scenario(INGEST_DOCUMENT, "engine_returns", FIELDS, {"publish_version": [QDRANT_AWAY] * 10})
ANOTHER_ENGINE_GOES = Scenario(
    INGEST_DOCUMENT,
    "another_engine_goes",
    FIELDS,
    {"publish_version": [QDRANT_AWAY, StepResult(status="engine_down", engine="tantivy")]},
)
POSTGRES_RETURNS = Scenario(INGEST_DOCUMENT, "postgres_returns", FIELDS, {"read_document": [POSTGRES_AWAY] * 2})
ENGINE_STAYS_AWAY = Scenario(
    INGEST_DOCUMENT,
    "engine_stays_away",
    FIELDS,
    {"publish_version": [QDRANT_AWAY, tried_again_after(23), QDRANT_AWAY, tried_again_after(2), QDRANT_AWAY]},
)
SHOWING_FAILS = Scenario(
    INGEST_DOCUMENT,
    "showing_fails",
    FIELDS,
    {"publish_version": [QDRANT_AWAY], "show_waiting": [permanent("internal", "no row")]},
)
WOKEN = Scenario(
    INGEST_DOCUMENT, "woken", FIELDS, {"publish_version": [QDRANT_AWAY] * 2}, wake_while_waiting, skip_time=False
)
CANCELLED_IN_ACTIVITY = Scenario(
    INGEST_DOCUMENT, "cancelled_in_activity", FIELDS, {"read_document": [until_cancelled]}, cancel_during_reading
)
CANCELLED_WHILE_WAITING = Scenario(
    INGEST_DOCUMENT,
    "cancelled_while_waiting",
    FIELDS,
    {"publish_version": repeat(QDRANT_AWAY)},
    cancel_while_waiting,
    skip_time=False,
)
CANCEL_SEEN_BY_ACTIVITY = Scenario(
    INGEST_DOCUMENT, "cancel_seen_by_activity", FIELDS, {"chunk_document": [StepResult(status="cancelled")]}
)
OPERATOR_CANCELS_ACTIVITY = Scenario(
    INGEST_DOCUMENT,
    "operator_cancels_activity",
    FIELDS,
    {"read_document": [until_cancelled]},
    operator_cancels_reading,
)
OPERATOR_CANCELS_WAIT = Scenario(
    INGEST_DOCUMENT,
    "operator_cancels_wait",
    FIELDS,
    {"publish_version": repeat(QDRANT_AWAY)},
    operator_cancels_while_waiting,
    skip_time=False,
)
SUPERSEDED = Scenario(INGEST_DOCUMENT, "superseded", FIELDS, {"publish_version": [StepResult(status="superseded")]})
GONE = Scenario(INGEST_DOCUMENT, "gone", FIELDS, {"embed_chunks": [StepResult(status="gone")]})
FAILED = Scenario(
    INGEST_DOCUMENT,
    "failed",
    FIELDS,
    {"read_document": [permanent("encrypted", "The file needs a password", step="parse")]},
)
FAILED_WHILE_ENRICHING = Scenario(
    INGEST_DOCUMENT,
    "failed_while_enriching",
    FIELDS,
    {"publish_version": [permanent("internal", "no word came", step="enrich")]},
)
FAILED_CLEAN_UP = Scenario(
    INGEST_DOCUMENT,
    "failed_clean_up",
    FIELDS,
    {
        "read_document": [permanent("corrupt", "The file is cut short")],
        "discard_version": [permanent("internal", "the sweep failed too")],
    },
)
FAILED_FINISH = Scenario(
    INGEST_DOCUMENT, "failed_finish", FIELDS, {"finish_ingest": [permanent("internal", "the end is not written")]}
)
PASSING_FAILURES = Scenario(
    INGEST_DOCUMENT,
    "passing_failures",
    FIELDS,
    {"embed_chunks": [retry(TransientFailure("model_unavailable", "try later"), 1)] * 2},
)
NOT_OURS = Scenario(INGEST_DOCUMENT, "not_ours", FIELDS, {"read_document": [StepResult(status="not_ours")]})
NOT_OURS_AND_CANCELLED = Scenario(
    INGEST_DOCUMENT,
    "not_ours_and_cancelled",
    FIELDS,
    {"read_document": [StepResult(status="cancelled")], "discard_version": [StepResult(status="not_ours")]},
)
OVERSIZE_RESULT = Scenario(
    INGEST_DOCUMENT, "oversize_result", FIELDS, {"read_document": [StepResult(detail="x" * 70_000)]}
)

RECORDED = (
    COMPLETE, FROM_EMBEDDING, FROM_INDEXING, ENGINE_RETURNS, ENGINE_STAYS_AWAY, ANOTHER_ENGINE_GOES, POSTGRES_RETURNS,
    SHOWING_FAILS, WOKEN, CANCELLED_IN_ACTIVITY, CANCELLED_WHILE_WAITING, CANCEL_SEEN_BY_ACTIVITY,
    OPERATOR_CANCELS_ACTIVITY, OPERATOR_CANCELS_WAIT, SUPERSEDED, GONE, FAILED, FAILED_CLEAN_UP, FAILED_FINISH,
    PASSING_FAILURES, NOT_OURS, NOT_OURS_AND_CANCELLED, FAILED_WHILE_ENRICHING,
)  # fmt: skip
