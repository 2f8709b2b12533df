"""One outbox row for Temporal: a run's workflow is started, or a signal wakes it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol

from pydantic import ValidationError

from schemas.errors import EngineDown, PermanentFailure, TransientFailure
from schemas.runs import RunEnd
from services.events import lost_run
from services.gateways.temporal_gateway import WorkflowStart
from services.gateways.tracing import continued
from services.stores import outbox_store, runs_store
from services.stores.database import Database, Row, Transaction
from services.stores.outbox_store import OutboxRow
from services.stores.sessions_store import WAKE_SESSION

MOST_TRIES = 20
"""For failures nobody foresaw. Waits included, they span more than a minute."""

logger = logging.getLogger(__name__)


class Workflows(Protocol):
    """What a delivery needs of `services/gateways/temporal_gateway.py`."""

    async def start(self, start: WorkflowStart) -> None: ...
    async def signal(self, workflow_id: str, signal: str, argument: Any) -> bool: ...
    async def wake_session(self, tenant: str, session_id: str, actor: str | None) -> None: ...


class Busy(TransientFailure):
    """The stream's head cannot be delivered yet; `reason` is recorded with the row."""


class TemporalDelivery:
    """`failpoint` is a no-op unless a test's environment asks for a kill between a start and its mark."""

    def __init__(self, database: Database, workflows: Workflows, failpoint: Callable[[str], None]) -> None:
        self._database = database
        self._workflows = workflows
        self._failpoint = failpoint

    async def deliver(self, transaction: Transaction, row: OutboxRow) -> None:
        """Delivers and marks in the transaction that holds the stream. Raises EngineDown, or Busy: then nothing is marked.

        A row that is refused for good fails its run and counts as delivered, with the reason: the stream moves on.
        """
        try:
            if row.payload["operation"] == WAKE_SESSION:
                await self._workflows.wake_session(row.tenant, row.payload["session_id"], row.payload.get("actor"))
            else:
                run = await runs_store.get(transaction, str(row.payload.get("run_id")))
                if run is not None and run["ended_at"] is None:
                    await self._act(row, run)
            await outbox_store.mark_delivered(transaction, row.id)
        except PermanentFailure as failure:
            if failure.code == "conflict":
                raise Busy(failure.code, failure.detail) from failure
            await self._give_up(transaction, row, failure)
        except EngineDown:
            raise
        except Exception as error:
            if row.tries < MOST_TRIES:
                logger.exception("outbox row %s was not delivered", row.id)
                raise Busy("internal", f"{type(error).__name__} while it was delivered") from error
            await self._give_up(transaction, row, PermanentFailure("internal", f"{type(error).__name__}"))

    async def _act(self, row: OutboxRow, run: Row) -> None:
        """A signal goes to the run's own workflow: an ended run's id may be another run's by now, so it gets none.

        Whoever delivers it, the trace of the request that asked for the run goes on.
        """
        with continued((run["input_ref"] or {}).get("traceparent")):
            await self._start_or_signal(row, run)

    async def _start_or_signal(self, row: OutboxRow, run: Row) -> None:
        if row.payload["operation"] == "signal":
            await self._workflows.signal(run["workflow_id"], row.payload["signal"], row.payload.get("argument"))
            return
        try:
            await self._workflows.start(start_of(run))
        except (KeyError, ValidationError) as error:
            raise PermanentFailure("internal", "The run's stored input does not fit its workflow") from error
        self._failpoint("start.before_outbox_mark")

    async def _give_up(self, transaction: Transaction, row: OutboxRow, failure: PermanentFailure) -> None:
        """The run's end is committed before the mark: a crash between them finds an ended run and marks the row."""
        error = {"code": failure.code, "detail": failure.detail, "retryable": True}
        async with self._database.begin(row.tenant) as ending:
            starts = row.payload["operation"] == "start"
            run = await runs_store.get(ending, row.payload["run_id"], for_update=True) if starts else None
            if run is not None:
                await lost_run.end(ending, run, RunEnd(state="failed", error=error))
        await outbox_store.mark_delivered(transaction, row.id, f"{failure.code}: {failure.detail}")
        logger.error("outbox row %s was refused for good: %s", row.id, failure)


def start_of(run: Row) -> WorkflowStart:
    """Ids and kind alone: what is shown beside a workflow is kept by Temporal, so it may hold no names."""
    return WorkflowStart(
        run_id=run["id"],
        tenant=run["tenant"],
        contract=run["contract"],
        workflow_id=run["workflow_id"],
        input_ref=run["input_ref"],
        actor=run["actor_user"],
        space_id=run["space_id"],
        summary=f"{run['kind']} {run['subject'] or run['id']}",
    )
