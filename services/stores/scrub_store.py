"""Takes the words of a removed document out of records that had to hold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, func, select, update

from services.stores.database import Transaction
from services.stores.tables.facts import audit_log
from services.stores.tables.runs import answers, run_events, sources

_WITHHELD_EVENTS = ("sources", "token", "thinking", "answer.text", "citations", "tool.call", "tool.result")


async def scrub_audit(transaction: Transaction, streams: Sequence[str], fields: Sequence[str]) -> None:
    cleaned: ColumnElement[Any] = audit_log.c.data
    for field in fields:
        cleaned = cleaned.op("-")(field)
    await transaction.execute(update(audit_log).where(audit_log.c.stream.in_(list(streams))).values(data=cleaned))


async def withhold_answers(transaction: Transaction, document_id: str) -> None:
    """Text that came from the document leaves stored answers and run events for good, not only from sight."""
    records = select(sources.c.record).where(sources.c.document_id == document_id)
    runs = select(func.replace(sources.c.record, "run:", "")).where(sources.c.document_id == document_id)
    emptied: dict[str, Any] = {"answer": None, "citations": [], "passages": None}
    await transaction.execute(
        update(answers).where(func.concat("run:", answers.c.run_id).in_(records)).values(**emptied)
    )
    from_it = run_events.c.run_id.in_(runs) & run_events.c.type.in_(_WITHHELD_EVENTS)
    await transaction.execute(update(run_events).where(from_it).values(data={"withheld": True}))
