"""What can happen to RemoveDocument, RemoveSpace and RefreshAccess."""

from __future__ import annotations

from itertools import repeat

from activities.failure_mapping import permanent
from schemas.workflow_contracts import (
    CANCEL_SIGNAL,
    REFRESH_ACCESS,
    REMOVE_DOCUMENT,
    REMOVE_SPACE,
    CancelRequest,
    StepResult,
)
from tests.workflows.ingest_scenarios import QDRANT_AWAY, tried_again_after
from tests.workflows.scenario import Running, Scenario
from tests.workflows.scripted_activities import until_cancelled

DOCUMENT = {"document_id": "doc-1"}
SPACE = {"space_id": "space-1"}
TWO_OPEN, ONE_OPEN = StepResult(counts={"open": 2}), StepResult(counts={"open": 1})
MANY_LEFT = StepResult(counts={"buried": 50, "left": 500})
ROUNDS_OVER_TWO_HISTORIES = 8


async def cancel_while_waiting(running: Running) -> None:
    await running.waits()
    await running.handle.signal(CANCEL_SIGNAL, CancelRequest(by="user-1"))
    await running.handle.signal("wake")


async def operator_cancels_while_waiting(running: Running) -> None:
    await running.waits()
    await running.handle.cancel(reason="the operator stops it")


async def cancel_during_refresh(running: Running) -> None:
    await running.activities.called("refresh_access")
    await running.handle.signal(CANCEL_SIGNAL, CancelRequest(by="user-1"))


REMOVED = Scenario(REMOVE_DOCUMENT, "complete", DOCUMENT)
REMOVED_AFTER_INGESTS = Scenario(
    REMOVE_DOCUMENT, "ingests_still_open", DOCUMENT, {"close_ingests": [TWO_OPEN, TWO_OPEN, *[ONE_OPEN] * 6]}
)
REMOVAL_WAITS = Scenario(
    REMOVE_DOCUMENT,
    "waits_without_end",
    DOCUMENT,
    {"empty_indexes": [QDRANT_AWAY, tried_again_after(25), QDRANT_AWAY, tried_again_after(999), QDRANT_AWAY]},
)
REMOVAL_REFUSES_CANCEL = Scenario(
    REMOVE_DOCUMENT,
    "refuses_cancel",
    DOCUMENT,
    {"empty_indexes": [QDRANT_AWAY]},
    cancel_while_waiting,
    skip_time=False,
)
REMOVAL_REFUSES_OPERATOR = Scenario(
    REMOVE_DOCUMENT,
    "refuses_operator_cancel",
    DOCUMENT,
    {"empty_indexes": [QDRANT_AWAY]},
    operator_cancels_while_waiting,
    skip_time=False,
)
REMOVAL_FAILED = Scenario(
    REMOVE_DOCUMENT, "failed", DOCUMENT, {"empty_blobs": [permanent("internal", "a blob stayed")]}
)
REMOVAL_NOT_OURS = Scenario(REMOVE_DOCUMENT, "not_ours", DOCUMENT, {"claim_run": [StepResult(status="not_ours")]})

SPACE_REMOVED = Scenario(
    REMOVE_SPACE, "complete", SPACE, {"bury_window": [MANY_LEFT, StepResult(counts={"buried": 7, "left": 0})]}
)
SPACE_CONTINUED = Scenario(REMOVE_SPACE, "continued", SPACE, {"bury_window": [MANY_LEFT] * ROUNDS_OVER_TWO_HISTORIES})
SPACE_FAILED = Scenario(REMOVE_SPACE, "failed", SPACE, {"forget_space": [permanent("internal", "a row stayed")]})
SPACE_NOT_OURS = Scenario(REMOVE_SPACE, "not_ours", SPACE, {"claim_run": [StepResult(status="not_ours")]})

REFRESHED = Scenario(REFRESH_ACCESS, "complete", DOCUMENT)
REFRESH_WAITS = Scenario(REFRESH_ACCESS, "engine_returns", DOCUMENT, {"refresh_access": [QDRANT_AWAY] * 3})
REFRESH_GONE = Scenario(REFRESH_ACCESS, "gone", DOCUMENT, {"refresh_access": [StepResult(status="gone")]})
REFRESH_FAILED = Scenario(
    REFRESH_ACCESS, "failed", DOCUMENT, {"refresh_access": [permanent("internal", "the index refused")]}
)
REFRESH_CANCELLED = Scenario(
    REFRESH_ACCESS, "cancelled", DOCUMENT, {"refresh_access": [until_cancelled]}, cancel_during_refresh
)
REFRESH_NOT_OURS = Scenario(REFRESH_ACCESS, "not_ours", DOCUMENT, {"claim_run": repeat(StepResult(status="not_ours"))})

RECORDED = (
    REMOVED, REMOVED_AFTER_INGESTS, REMOVAL_WAITS, REMOVAL_REFUSES_CANCEL, REMOVAL_REFUSES_OPERATOR, REMOVAL_FAILED,
    REMOVAL_NOT_OURS, SPACE_REMOVED, SPACE_CONTINUED, SPACE_FAILED, SPACE_NOT_OURS, REFRESHED, REFRESH_WAITS,
    REFRESH_GONE, REFRESH_FAILED, REFRESH_CANCELLED, REFRESH_NOT_OURS,
)  # fmt: skip
