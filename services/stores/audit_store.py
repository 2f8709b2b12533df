"""The audit log: who changed what, when. It holds ids, numbers and states, never words of a document."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from schemas.domain_events import SCRUBBED_FIELDS
from services.stores import scrub_store
from services.stores.database import Transaction
from services.stores.tables.facts import audit_log, domain_events

"""What leaves the rows of a document when it is removed."""


@dataclass(frozen=True)
class AuditRow:
    """One fact as the log tells it."""

    stream: str
    stream_version: int
    type: str
    actor: str | None
    data: dict[str, Any]
    at: datetime


async def write(transaction: Transaction, rows: Sequence[AuditRow]) -> None:
    """A fact that is in the log already stays as it is, so writing again is harmless."""
    if rows:
        values = [{name: getattr(row, name) for name in AuditRow.__dataclass_fields__} for row in rows]
        await transaction.execute(insert(audit_log).on_conflict_do_nothing(), values)


async def scrub_removed(transaction: Transaction, streams: Collection[str]) -> None:
    """Scrubs the rows of those of the streams whose document has been removed by now, whenever the rows were written."""
    removed = select(domain_events.c.stream).where(
        domain_events.c.stream.in_(list(streams)), domain_events.c.type == "document.removed"
    )
    found = [row["stream"] for row in await transaction.all(removed)]
    if found:
        await scrub_store.scrub_audit(transaction, found, SCRUBBED_FIELDS)
