"""What AskApproval does at its row: looks, reminds, writes that time is up, and acknowledges what was decided."""

from __future__ import annotations

from schemas.runs import RunEnd, RunEventDraft
from services.agents import approval_events
from services.events import run_ending
from services.stores import approvals_store, run_event_log, runs_store
from services.stores.database import Database, Row, Transaction

_END_OF = {"approved": "succeeded", "rejected": "succeeded", "expired": "expired", "cancelled": "cancelled"}


class ApprovalWaiting:
    """The lock order holds: run, then approval."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def look(self, tenant: str, run_id: str, approval_id: str, outcome: str | None) -> str:
        """The request's state now. A pending one with an `outcome` (`expired`, `cancelled`) gets that first, and the run ends."""
        async with self._database.begin(tenant) as transaction:
            run = await runs_store.get(transaction, run_id, for_update=True)
            row = await approvals_store.get(transaction, approval_id, for_update=True)
            if row is None:
                return "cancelled"
            state = str(row["state"])
            if state == "pending" and outcome is not None:
                await approvals_store.close(transaction, row, outcome)
                await approval_events.tell_over(transaction, row, outcome)
                state = outcome
            if state == "pending":
                await self._show_waiting(transaction, run_id, run, row)
            else:
                await approvals_store.acknowledge(transaction, approval_id)
                await run_ending.end(transaction, run_id, RunEnd(state=_END_OF.get(state, "succeeded")))
        return state

    @staticmethod
    async def _show_waiting(transaction: Transaction, run_id: str, run: Row | None, row: Row) -> None:
        if run is not None and run["waiting_for"] is None:
            until = row["expires_at"].isoformat()
            await runs_store.wait(transaction, run_id, "approval", until)
            data = {"for": "approval", "until": until}
            await run_event_log.append(transaction, run_id, [RunEventDraft(type="run.waiting", data=data)])

    async def remind(self, tenant: str, run_id: str, approval_id: str) -> None:
        """The turn's stream says again that somebody is waited for."""
        async with self._database.begin(tenant) as transaction:
            row = await approvals_store.get(transaction, approval_id)
            if row is None or row["state"] != "pending":
                return
            data = {"for": "approval", "until": row["expires_at"].isoformat(), "reminder": True}
            for stream in (run_id, row["run_id"]):
                await run_event_log.append(transaction, stream, [RunEventDraft(type="run.waiting", data=data)])
