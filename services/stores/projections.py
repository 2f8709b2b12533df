"""Applies an event to its read model. The live path and `perdure rebuild` both come through here, so they cannot differ.

An event's data names columns. For a document, columns of its version go to the row of `document_versions` that
`version` numbers; the document's own `state` and `stage` follow its newest version.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import BindParameter, Table, and_, bindparam, case, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from schemas.domain_events import DomainEvent
from services.stores.database import Transaction
from services.stores.prepared import Prepared
from services.stores.tables.agents import approvals
from services.stores.tables.documents import document_versions, documents
from services.stores.tables.runs import runs

READ_MODELS: tuple[Table, ...] = (documents, document_versions, runs, approvals)
PROGRESS_COLUMNS = {"documents": {"progress"}, "runs": {"progressed_at"}, "approvals": {"acknowledged_at"}}
"""Columns that a rebuild need not give again: they tell how far work is, not what happened."""

_TIMES = {
    "tombstoned_at", "removed_at", "created_at", "published_at", "cancel_requested_at", "started_at", "ended_at",
    "waiting_until", "expires_at", "decided_at",
}  # fmt: skip
_NOT_VERSION = {"document_id", "number", "tenant"}
VERSION_COLUMNS = {column.name for column in document_versions.columns} - _NOT_VERSION
DOCUMENT_COLUMNS = {column.name for column in documents.columns} - {"id", "tenant", "progress"}
RUN_COLUMNS = {column.name for column in runs.columns} - {"id", "tenant", "progressed_at"}
APPROVAL_COLUMNS = {column.name for column in approvals.columns} - {"id", "tenant", "acknowledged_at"}
_FOLLOWS_NEWEST = {"state", "stage"}


async def apply(transaction: Transaction, event: DomainEvent) -> None:
    kind, _, key = event.stream.partition(":")
    if kind == "document":
        await _apply_document(transaction, event, key)
    elif kind == "run":
        await _apply_run(transaction, event, key)
    elif kind == "approval":
        await _apply_approval(transaction, event, key)


async def _apply_run(transaction: Transaction, event: DomainEvent, run_id: str) -> None:
    values = _columns(event, RUN_COLUMNS)
    if event.type == "run.queued":
        row = {"id": run_id, "tenant": event.tenant, "created_at": event.time, "state": "queued", **values}
        await transaction.execute(insert(runs).values(progressed_at=event.time, **row))
        return
    await _change(transaction, _change_of_run, {"run": run_id}, {"progressed_at": event.time, **values})


async def _apply_approval(transaction: Transaction, event: DomainEvent, approval_id: str) -> None:
    values = _columns(event, APPROVAL_COLUMNS)
    if event.type in ("approval.requested", "approval.effect_unknown"):
        row = {"id": approval_id, "tenant": event.tenant, "requested_at": event.time, **values}
        await transaction.execute(insert(approvals).values(**row))
        return
    await transaction.execute(update(approvals).where(approvals.c.id == approval_id).values(**values))


async def _apply_document(transaction: Transaction, event: DomainEvent, document_id: str) -> None:
    if event.type == "document.removed":
        await _leave_skeleton(transaction, event, document_id)
        return
    values = {**_columns(event, DOCUMENT_COLUMNS), "updated_at": event.time}
    version = event.data.get("version")
    if version is not None:
        await _apply_version(transaction, event, document_id, int(version))
    if event.type == "document.received" and "space_id" in values:  # the first version's event alone names the space
        row = {"id": document_id, "tenant": event.tenant, "created_at": event.time}
        await transaction.execute(insert(documents).values(**row, **values))
        return
    if version is None or "newest_version" in values:
        await _change(transaction, _change_of_document, {"document": document_id}, values)
        return
    named = {"document": document_id, "by_version": int(version)}
    await _change(transaction, _change_by_version, named, values)


async def _change(
    transaction: Transaction,
    built: Callable[[frozenset[str]], Prepared],
    named: dict[str, Any],
    values: dict[str, Any],
) -> None:
    """An update of these columns; its statement is built once for each set of columns."""
    await transaction.run(built(frozenset(values)), {**named, **{_new(name): value for name, value in values.items()}})


def _new(column: str) -> str:
    return f"new_{column}"


@cache
def _change_of_run(columns: frozenset[str]) -> Prepared:
    return Prepared(update(runs).where(runs.c.id == bindparam("run")).values(_bound(runs, columns)))


@cache
def _change_of_document(columns: frozenset[str]) -> Prepared:
    return Prepared(update(documents).where(documents.c.id == bindparam("document")).values(_bound(documents, columns)))


@cache
def _change_by_version(columns: frozenset[str]) -> Prepared:
    """A document keeps what its newest version says, whatever an older one does."""
    values: dict[str, Any] = _bound(documents, columns)
    older = documents.c.newest_version > bindparam("by_version")
    values |= {name: case((older, documents.c[name]), else_=values[name]) for name in _FOLLOWS_NEWEST & columns}
    return Prepared(update(documents).where(documents.c.id == bindparam("document")).values(values))


@cache
def _change_of_version(columns: frozenset[str]) -> Prepared:
    of_version = and_(
        document_versions.c.document_id == bindparam("document"), document_versions.c.number == bindparam("version")
    )
    return Prepared(update(document_versions).where(of_version).values(_bound(document_versions, columns)))


def _bound(table: Table, columns: frozenset[str]) -> dict[str, BindParameter[Any]]:
    return {name: bindparam(_new(name), type_=table.c[name].type) for name in sorted(columns)}


async def _apply_version(transaction: Transaction, event: DomainEvent, document_id: str, number: int) -> None:
    values = _columns(event, VERSION_COLUMNS)
    if not values:
        return
    if event.type == "document.received":
        row = {"document_id": document_id, "tenant": event.tenant, "number": number, "created_at": event.time}
        await transaction.execute(insert(document_versions).values(**row, **values))
        return
    await _change(transaction, _change_of_version, {"document": document_id, "version": number}, values)


async def _leave_skeleton(transaction: Transaction, event: DomainEvent, document_id: str) -> None:
    kept = {"id", "tenant", "space_id", "access_version"}
    emptied: dict[str, Any] = {column.name: None for column in documents.columns if column.name not in kept}
    emptied |= {"state": "removed", "tombstoned_at": event.time, "removed_at": event.time, "access_version": 1}
    await transaction.execute(delete(document_versions).where(document_versions.c.document_id == document_id))
    await transaction.execute(update(documents).where(documents.c.id == document_id).values(**emptied))


def _columns(event: DomainEvent, allowed: set[str]) -> dict[str, Any]:
    """The event's data met with a table's columns; times come back from their RFC 3339 form."""
    values = {name: value for name, value in event.data.items() if name in allowed}
    for name in _TIMES & values.keys():
        if isinstance(values[name], str):
            values[name] = datetime.fromisoformat(values[name])
    return values


async def clear(transaction: Transaction) -> None:
    for table in READ_MODELS:
        await transaction.execute(delete(table))


async def count(transaction: Transaction) -> dict[str, int]:
    return {table.name: int(await transaction.scalar(select(func.count()).select_from(table))) for table in READ_MODELS}
