"""The read models made again from the events are the ones that were there, in every column but progress."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import text

from schemas.access import Actor
from schemas.domain_events import SCRUBBED_FIELDS, EventDraft
from schemas.identifiers import document_stream
from schemas.runs import RunEnd
from schemas.workflow_contracts import INGEST_DOCUMENT
from services.events import run_ending
from services.events.rebuild import rebuild_read_models
from services.stores import event_log, runs_store
from services.stores.database import Database, Transaction
from services.stores.projections import PROGRESS_COLUMNS, READ_MODELS
from tests.integration.events import facts

TENANTS = ("acme", "globex")
DOCUMENTS = 12
STEPS = 160


class History:
    """Writes what could have happened, drawn from a seed."""

    def __init__(self, database: Database, seed: int) -> None:
        self._database = database
        self._random = random.Random(seed)
        self._versions: dict[str, int] = {}
        self._removed: set[str] = set()
        self._runs: list[tuple[str, str]] = []

    async def happen(self) -> None:
        for step in range(STEPS):
            tenant = self._random.choice(TENANTS)
            document = f"{tenant}-{self._random.randrange(DOCUMENTS)}"
            async with self._database.begin(tenant) as transaction:
                if document in self._removed:
                    continue
                if document not in self._versions or self._random.random() < 0.2:
                    await self._receive(transaction, document, step)
                elif self._random.random() < 0.08:
                    await self._remove(transaction, document)
                elif self._random.random() < 0.3:
                    await self._move_run(transaction, tenant)
                else:
                    await self._change(transaction, document)

    async def _receive(self, transaction: Transaction, document: str, step: int) -> None:
        number = self._versions[document] = self._versions.get(document, 0) + 1
        run_id = f"run-{step}"
        data: dict[str, Any] = {
            "version": number, "newest_version": number, "state": "received", "stage": "received", "run_id": run_id,
            "sha256": "00" * 32, "bytes": step, "blob_key": f"uploads/{step}", "media_type": "text/plain", "url": None,
        }  # fmt: skip
        if number == 1:
            data |= {
                "space_id": "s", "source": "upload", "external_id": f"{document}.txt", "title": f"Title {document}",
                "owner": "ada", "readers": ["space"], "tags": ["new"], "parent_id": None,
            }  # fmt: skip
        await runs_store.create(
            transaction,
            INGEST_DOCUMENT,
            run_id=run_id,
            workflow_id=f"ingest:{transaction.tenant}:{document}:{number}",
            actor=Actor(tenant=transaction.tenant, user="ada", key="key"),
            input_ref={"document_id": document, "version": number},
            subject=document,
        )
        self._runs.append((transaction.tenant, run_id))
        await self._append(transaction, document, "document.received", data)

    async def _change(self, transaction: Transaction, document: str) -> None:
        number = self._random.randint(1, self._versions[document])
        now = datetime.now(UTC).isoformat()
        changes: dict[str, dict[str, Any]] = {
            "document.staged": {"version": number, "state": "parsing", "stage": "parsing"},
            "document.parsed": {
                "version": number,
                "text_key": f"text/{number}",
                "warnings": [{"code": "w"}],
                "coverage": {},
            },
            "document.published": {"version": number, "live_version": number, "chunks": 7, "published_at": now},
            "document.ready": {"version": number, "state": "ready", "stage": "ready"},
            "document.failed": {"version": number, "state": "failed", "error": {"code": "corrupt", "stage": "parsing"}},
            "document.cancelled": {"version": number, "state": "cancelled"},
            "document.retried": {"version": number, "state": "received", "stage": "received", "error": None},
            "document.readers_changed": {"readers": [f"user:{self._random.randrange(5)}"], "access_version": 2},
            "document.tags_changed": {"tags": [f"tag-{self._random.randrange(5)}"]},
        }
        kind = self._random.choice(sorted(changes))
        await self._append(transaction, document, kind, changes[kind])

    async def _remove(self, transaction: Transaction, document: str) -> None:
        self._removed.add(document)
        tombstone = {"state": "removing", "tombstoned_at": transaction.now.isoformat()}
        await self._append(transaction, document, "document.removing", tombstone)
        await event_log.scrub(transaction, [document_stream(document)], SCRUBBED_FIELDS)
        await self._append(transaction, document, "document.removed", {})

    async def _move_run(self, transaction: Transaction, tenant: str) -> None:
        own = [run_id for of_tenant, run_id in self._runs if of_tenant == tenant]
        if not own:
            return
        run_id, move = self._random.choice(own), self._random.randrange(5)
        if move == 0:
            await runs_store.claim(transaction, run_id, "execution")
        elif move == 1:
            await runs_store.wait(transaction, run_id, "engine:qdrant", transaction.now.isoformat())
        elif move == 2:
            await runs_store.resume(transaction, run_id)
        elif move == 3:
            await runs_store.request_cancel(transaction, run_id, "ada")
        else:
            error = {"code": "timeout", "detail": "too slow", "retryable": True}
            await run_ending.end(transaction, run_id, RunEnd(state="failed", error=error, usage={"tokens": 3}))

    async def _append(self, transaction: Transaction, document: str, type: str, data: dict[str, Any]) -> None:
        draft = EventDraft(stream=document_stream(document), type=type, data=data)
        await event_log.append(transaction, draft, actor="ada")


async def read_models(database: Database) -> dict[str, list[dict[str, Any]]]:
    found = {}
    for table in READ_MODELS:
        columns = [column.name for column in table.columns if column.name not in PROGRESS_COLUMNS.get(table.name, ())]
        key = ", ".join(column.name for column in table.primary_key)
        names = ", ".join(f'"{name}"' for name in columns)
        found[table.name] = await facts.rows(database, f"SELECT {names} FROM {table.name} ORDER BY {key}")
    return found


async def test_a_rebuild_gives_the_same_rows_after_a_rich_history(database: Database) -> None:
    await History(database, seed=4711).happen()
    before = await read_models(database)
    states = {row["state"] for row in before["documents"]} | {row["state"] for row in before["runs"]}
    assert {"removed", "failed", "queued"} <= states, "the history is too poor to prove anything"
    assert max(row["number"] for row in before["document_versions"]) >= 3
    await facts.rows(database, "UPDATE documents SET state = 'nonsense', title = 'wrong' RETURNING id")
    await facts.rows(database, "DELETE FROM runs RETURNING id")
    await rebuild_read_models(database)
    assert await read_models(database) == before


async def test_a_removed_document_rebuilds_to_the_skeleton_that_its_removal_left(database: Database) -> None:
    history = History(database, seed=1)
    async with database.begin("acme") as transaction:
        await history._receive(transaction, "acme-0", 0)
    async with database.begin("acme") as transaction:
        await history._remove(transaction, "acme-0")
    await rebuild_read_models(database)
    (row,) = await facts.rows(database, "SELECT * FROM documents")
    kept = {name for name, value in row.items() if value is not None}
    assert kept == {"tenant", "id", "space_id", "state", "access_version", "tombstoned_at", "removed_at"}
    assert not await facts.rows(database, "SELECT number FROM document_versions")


async def test_a_rebuild_misses_no_event_while_an_older_transaction_runs(database: Database) -> None:
    history = History(database, seed=2)
    async with database.begin("globex") as unrelated:
        await unrelated.scalar(text("SELECT pg_current_xact_id()"))  # older than the event, and still running
        async with database.begin("acme") as transaction:
            await history._receive(transaction, "acme-0", 0)
        rebuilt = await rebuild_read_models(database)
    assert rebuilt.rows == {"documents": 1, "document_versions": 1, "runs": 1, "approvals": 0}
