"""Open runs that have not moved for a while, over all tenants."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select

from services.stores.database import Row, Transaction
from services.stores.tables.runs import runs


async def page(transaction: Transaction, not_since: datetime, after_id: str, limit: int) -> list[Row]:
    """In the order of their ids, past `after_id`."""
    stalled = (runs.c.ended_at.is_(None), runs.c.progressed_at < not_since, runs.c.id > after_id)
    return list(await transaction.all(select(runs).where(*stalled).order_by(runs.c.id).limit(limit)))
