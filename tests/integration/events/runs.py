"""Runs that tests queue, and how they stand."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text

from schemas.access import Actor
from schemas.domain_events import EventDraft
from schemas.identifiers import document_stream, new_id
from schemas.workflow_contracts import INGEST_DOCUMENT
from services.stores import event_log, run_event_log, runs_store
from services.stores.database import Database, Row
from tests.integration.events.facts import TENANT

ADA = Actor(tenant=TENANT, user="ada", key="key-1")


async def queue_ingest(database: Database, document_id: str, /, *, number: int = 1, **input_ref: Any) -> str:
    """A received document version and its run, as reception writes them."""
    run_id = new_id()
    async with database.begin(TENANT) as transaction:
        await runs_store.create(
            transaction,
            INGEST_DOCUMENT,
            run_id=run_id,
            workflow_id=f"ingest:{TENANT}:{document_id}:{number}",
            actor=ADA,
            input_ref=input_ref or {"document_id": document_id, "version": number},
            subject=document_id,
            space_id="space-1",
        )
        data = {
            "version": number, "newest_version": number, "state": "received", "stage": "received", "run_id": run_id,
            "space_id": "space-1", "source": "upload", "external_id": document_id, "readers": [], "tags": [],
        }  # fmt: skip
        already = await transaction.scalar(
            text("SELECT 1 FROM document_versions WHERE document_id = :id AND number = :number"),
            {"id": document_id, "number": number},
        )
        if not already:
            draft = EventDraft(stream=document_stream(document_id), type="document.received", data=data)
            await event_log.append(transaction, draft)
    return run_id


async def run(database: Database, run_id: str) -> Row:
    async with database.begin(TENANT) as transaction:
        row = await runs_store.get(transaction, run_id)
    assert row is not None
    return row


async def told(database: Database, run_id: str) -> list[str]:
    """The types of the events that people who watch the run have got."""
    async with database.begin(TENANT) as transaction:
        return [event.type for event in await run_event_log.after(transaction, run_id, 0)]


async def let_stall(database: Database, *run_ids: str) -> None:
    """As if the runs had not moved for ten minutes."""
    async with database.begin(TENANT) as transaction:
        moved = "UPDATE runs SET progressed_at = progressed_at - interval '10 minutes' WHERE id = ANY(:ids)"
        await transaction.execute(text(moved), {"ids": list(run_ids)})
