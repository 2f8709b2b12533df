"""Closes what engines forget: runs that have not moved are compared with what Temporal knows of them (invariant 4)."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Protocol

from schemas.errors import EngineDown, PermanentFailure, TransientFailure
from schemas.identifiers import run_stream
from schemas.runs import RunEnd
from schemas.settings import WorkSettings
from schemas.workflow_contracts import CANCEL_SIGNAL, WAKE_SIGNAL
from services.events import lost_run
from services.gateways.temporal_gateway import ExecutionView
from services.stores import approvals_store, event_log, outbox_store, runs_store, sessions_store, stalled_runs
from services.stores.database import Database, Row, Transaction
from services.stores.runs_store import TEMPORAL

LEADER = "reconciler"
PAGE = 200
STARTED_BY_OTHERS = frozenset({"turn", "approval"})
"""A turn belongs to its session, a request to the turn that asks."""

logger = logging.getLogger(__name__)


class Executions(Protocol):
    """What the reconciler needs of `services/gateways/temporal_gateway.py`."""

    async def describe(self, workflow_id: str) -> ExecutionView | None: ...
    async def signal(self, workflow_id: str, signal: str, argument: Any) -> bool: ...


class Reconciler:
    """Any number may run; an advisory lock makes one of them look."""

    def __init__(self, database: Database, executions: Executions, settings: WorkSettings) -> None:
        self._database = database
        self._executions = executions
        self._settings = settings

    async def run(self) -> None:
        """At start and every `reconcile_every_s`, until cancelled."""
        while True:
            try:
                found = await self.reconcile()
                if found:
                    logger.info("runs that stood still: %s", dict(found))
            except (EngineDown, TransientFailure) as failure:
                logger.warning("the reconciler waits: %s", failure)
            except Exception:
                logger.exception("the reconciler failed")
            await asyncio.sleep(self._settings.reconcile_every_s)

    async def reconcile(self) -> Mapping[str, int]:
        """One look; how many runs were found how. Raises EngineDown when Temporal or Postgres is away."""
        found: Counter[str] = Counter()
        async with self._database.every_tenant("one leader looks at the runs of all tenants") as leader:
            if not await leader.try_lock(LEADER):
                return found
            not_since = leader.now - timedelta(seconds=self._settings.stalled_after_s)
            last = ""
            while page := await stalled_runs.page(leader, not_since, last, PAGE):
                for run in page:
                    found[await self._look_at(run)] += 1
                last = page[-1]["id"]
        return found

    async def _look_at(self, run: Row) -> str:
        try:
            return await self._compare(run, await self._executions.describe(run["workflow_id"]))
        except PermanentFailure as failure:
            logger.warning("run %s cannot be compared: %s", run["id"], failure)
            return "refused"

    async def _compare(self, run: Row, view: ExecutionView | None) -> str:
        """An execution is this run's by its memo; one under the same id of another run tells that ours is closed, if we
        ever had one."""
        if view is None:
            return await self._start_again(run)
        if view.run_id != run["id"]:
            return await self._start_again(run) if run["execution_id"] is None else await self._record_loss(run, "lost")
        if view.closed:
            return await self._record_loss(run, view.status)
        if run["cancel_requested_at"] is not None:
            await self._executions.signal(run["workflow_id"], CANCEL_SIGNAL, {"by": run["cancelled_by"]})
            return "signalled"
        if run["kind"] == "approval" and await self._decided_unseen(run):
            await self._executions.signal(run["workflow_id"], WAKE_SIGNAL, None)
            return "signalled"
        return "alive"

    async def _decided_unseen(self, run: Row) -> bool:
        """The request's row has moved on and its workflow has not said that it knows."""
        async with self._database.begin(run["tenant"]) as transaction:
            return await approvals_store.is_unacknowledged(transaction, str(run["subject"]))

    async def _start_again(self, run: Row) -> str:
        """From the stored contract and input. The execution that is gone leaves the row, or no other could claim it.

        What another workflow starts is left to that one: a turn to its session, which is woken, all else to its parent.
        """
        async with self._database.begin(run["tenant"]) as transaction:
            current = await self._still_stalled(transaction, run)
            stream = run_stream(run["id"])
            if current is None or await outbox_store.start_is_pending(transaction, TEMPORAL, stream):
                return "moving"
            left = run["kind"] in STARTED_BY_OTHERS
            if current["execution_id"] is not None or not left:
                data = {"state": "queued", "execution_id": None, "waiting_for": None, "waiting_until": None}
                await runs_store.append(transaction, current, "run.resumed", data)
            if left:
                session_id = run["input_ref"].get("session_id")
                if session_id is not None:
                    await sessions_store.wake(transaction, session_id, run["actor_user"])
                return "left"
            payload = {"operation": "start", "run_id": run["id"]}
            await event_log.enqueue(transaction, TEMPORAL, stream, payload)
        logger.warning("Temporal does not know run %s: started again", run["id"])
        return "started"

    async def _record_loss(self, run: Row, status: str) -> str:
        """The workflow is closed and did not write its end down."""
        async with self._database.begin(run["tenant"]) as transaction:
            current = await self._still_stalled(transaction, run)
            if current is None:
                return "moving"
            if status == "canceled":
                await lost_run.end(transaction, current, RunEnd(state="cancelled"))
            else:
                detail = f"The workflow of this run is {status} and left no result; try again."
                error = {"code": "engine_lost", "detail": detail, "retryable": True}
                await lost_run.end(transaction, current, RunEnd(state="failed", error=error))
        logger.warning("run %s is ended: its workflow is %s", run["id"], status)
        return "ended"

    @staticmethod
    async def _still_stalled(transaction: Transaction, run: Row) -> Row | None:
        """The run, locked; None when it has moved since it was looked at."""
        current = await runs_store.get(transaction, run["id"], for_update=True)
        if current is None or current["ended_at"] is not None or current["progressed_at"] != run["progressed_at"]:
            return None
        return current
