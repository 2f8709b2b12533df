"""What streams say of requests for approval: to the turn that asked, and to those that wait for that turn."""

from __future__ import annotations

from schemas.runs import RunEventDraft
from services.stores import run_event_log, turns_store
from services.stores.database import Row, Transaction


async def tell_over(transaction: Transaction, request: Row, state: str) -> None:
    """`approval.decided`. Locks the streams of runs: a transaction that locks requests as well does that first."""
    told = RunEventDraft(type="approval.decided", data={"approval_id": request["id"], "state": state})
    for run_id in [request["run_id"], *await turns_store.ancestors(transaction, request["run_id"])]:
        await run_event_log.append(transaction, run_id, [told])
