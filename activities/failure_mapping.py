"""Decides, in one place, what a failure means for the workflow (invariant 6).

PermanentFailure        -> non-retryable ApplicationError, typed by its code: the run ends failed(code)
TransientFailure        -> counted in run_steps; retried by Temporal until `work.transient_tries`, then permanent
EngineDown              -> a StepResult: the workflow waits on a timer and holds no worker slot
DocumentGone, NewerVersionLive, NotOurs, a cancelled run -> a StepResult: nothing went wrong
anything else           -> a bug: counted like a transient failure under the code `internal`
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from schemas.errors import EngineDown, PerdureError, PermanentFailure, TransientFailure
from schemas.workflow_contracts import StepResult
from services.ingestion.publish_stage import NewerVersionLive
from services.stores.documents_store import DocumentGone
from services.stores.run_event_log import PenTaken


class NotOurs(PerdureError):
    """The run has ended, or is another execution's: there is nothing to do."""


class CancelWished(PerdureError):
    """Somebody asked for the run's cancel before it was claimed."""


FIRST_RETRY_S = 0.2
LONGEST_RETRY_S = 30.0


def quiet_end(error: BaseException) -> StepResult | None:
    """The ends that are no failures, as what the workflow is told; None for all else."""
    if isinstance(error, EngineDown):
        return StepResult(status="engine_down", engine=error.engine, detail=error.detail)
    if isinstance(error, DocumentGone):
        return StepResult(status="gone")
    if isinstance(error, PenTaken):
        return StepResult(status="pen_taken")  # a later attempt writes; nobody waits for this one's result
    if isinstance(error, NewerVersionLive):
        return StepResult(status="superseded")
    if isinstance(error, NotOurs):
        return StepResult(status="not_ours")
    if isinstance(error, CancelWished):
        return StepResult(status="cancelled")
    return None


def permanent(code: str, detail: str, *, retryable: bool = False, step: str | None = None) -> ApplicationError:
    """What ends a run. `retryable` tells the person whether trying the document again may help; `step` is what failed."""
    packed = {"code": code, "detail": detail, "retryable": retryable, "step": step}
    return ApplicationError(detail, packed, type=code, non_retryable=True)


def of_permanent(error: PermanentFailure, step: str) -> ApplicationError:
    return permanent(error.code, error.detail, step=step)


def retry(error: TransientFailure, failures: int) -> ApplicationError:
    """Tries again after what the other side asked for, or after a doubling wait."""
    wait_s = error.retry_after_s or min(LONGEST_RETRY_S, FIRST_RETRY_S * 2**failures)
    return ApplicationError(
        error.detail,
        type=error.code,
        next_retry_delay=timedelta(seconds=wait_s),
        category=ApplicationErrorCategory.BENIGN,
    )


def as_transient(error: Exception) -> TransientFailure:
    if isinstance(error, TransientFailure):
        return error
    return TransientFailure("internal", f"{type(error).__name__} inside Perdure; its log has the details")


def error_details(details: tuple[Any, ...], fallback: str) -> dict[str, Any]:
    """What `permanent` packed, on the workflow's side."""
    first = details[0] if details else None
    if isinstance(first, dict) and "code" in first:
        return dict(first)
    return {"code": "internal", "detail": fallback, "retryable": True}
