"""The end of a run that no workflow will end any more: its start was refused, or its execution is gone."""

from __future__ import annotations

from schemas.documents import ENDED_STATES
from schemas.runs import RunEnd
from services.events import run_ending
from services.stores import documents_store
from services.stores.database import Row, Transaction

_EVENT_OF_END = {"failed": "document.failed", "expired": "document.failed", "cancelled": "document.cancelled"}


async def end(transaction: Transaction, run: Row, end: RunEnd) -> bool:
    """Ends the run, and with an ingest the version it worked on. False when it had ended before."""
    if not await run_ending.end(transaction, run["id"], end):
        return False
    document_id, number = run["input_ref"].get("document_id"), run["input_ref"].get("version")
    event = _EVENT_OF_END.get(end.state)
    if run["kind"] != "ingest" or document_id is None or number is None or event is None:
        return True
    document = await documents_store.get(transaction, document_id, for_update=True)
    version = await documents_store.version(transaction, document_id, number)
    if document is None or document["tombstoned_at"] is not None:
        return True
    if version is not None and version["state"] not in ENDED_STATES:
        error = {**end.error, "stage": version["stage"] or "received"} if end.error is not None else None
        data = {"version": number, "state": event.removeprefix("document."), "error": error}
        await documents_store.append(transaction, document_id, event, data, run_id=run["id"])
    return True
