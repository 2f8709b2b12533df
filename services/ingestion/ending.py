"""How an ingest ends: the document's state, the run's end and the stream's last event, in one transaction (invariant 8)."""

from __future__ import annotations

from schemas.runs import RunEnd
from services.events import run_ending
from services.ingestion.version_work import VersionWork
from services.stores import documents_store
from services.stores.database import Database

_EVENT_OF_STATE = {"succeeded": "ready", "failed": "failed", "cancelled": "cancelled", "expired": "failed"}


class Ending:
    """Writes how an ingest ended, once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def end(self, work: VersionWork, end: RunEnd, *, superseded: bool = False) -> None:
        """Safe to run again: the first end stands. A tombstoned document keeps its state; only the run ends."""
        async with self._database.begin(work.tenant) as transaction:
            if not await run_ending.end(transaction, work.run_id, end):
                return
            document = await documents_store.get(transaction, work.document_id, for_update=True)
            if document is None or document["tombstoned_at"] is not None:
                return
            state = "superseded" if superseded else _EVENT_OF_STATE[end.state]
            data = {"version": work.version, "state": state, "error": end.error}
            if state == "ready":
                data["stage"] = "ready"
            await documents_store.append(transaction, work.document_id, f"document.{state}", data, run_id=work.run_id)
