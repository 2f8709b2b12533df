"""A run's one end: its event, its row, and the last thing its stream says, together."""

from __future__ import annotations

from typing import Any

from schemas.runs import RunEnd, RunEventDraft
from services.stores import run_event_log, runs_store
from services.stores.database import Transaction


async def end(transaction: Transaction, run_id: str, end: RunEnd) -> bool:
    """False when the run had ended before; then nothing is written."""
    if not await runs_store.end(transaction, run_id, end):
        return False
    row = await runs_store.get(transaction, run_id)
    data: dict[str, Any] = {}
    if end.state == "failed":
        error = end.error or {}
        data = {name: error.get(name) for name in ("code", "detail", "retryable")}
    elif end.state == "cancelled":
        data = {"by": row["cancelled_by"] if row is not None else None}
    await run_event_log.append(transaction, run_id, [RunEventDraft(type=f"run.{end.state}", data=data)])
    return True
