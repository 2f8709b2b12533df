"""A run is asked to stop. A turn that its session has not come to has nobody to ask, so it ends here."""

from __future__ import annotations

from schemas.runs import RunEnd
from services.events import run_ending
from services.stores import runs_store, sessions_store
from services.stores.database import Transaction


async def cancel(transaction: Transaction, run_id: str, by: str | None) -> None:
    """One that has ended stays as it is."""
    run = await runs_store.get(transaction, run_id)
    if run is None:
        return
    of_session = run["kind"] == "turn" and run["parent_id"] is None
    session = await sessions_store.lock(transaction, run["subject"]) if of_session else None
    wished = await runs_store.request_cancel(transaction, run_id, by)
    if wished and session is not None and session["running"] != run_id:
        await run_ending.end(transaction, run_id, RunEnd(state="cancelled"))
