"""The whole event log once more, for a rebuild of the read models."""

from __future__ import annotations

from sqlalchemy import select, text

from schemas.domain_events import DomainEvent
from services.stores.database import Transaction
from services.stores.projections import READ_MODELS
from services.stores.tables.facts import domain_events


async def lock_out_writers(transaction: Transaction) -> None:
    """Until this transaction ends nobody else writes an event or a read model; reading goes on, over what was there before."""
    names = ", ".join(table.name for table in (domain_events, *READ_MODELS))
    await transaction.execute(text(f"LOCK TABLE {names} IN EXCLUSIVE MODE"))


async def page(transaction: Transaction, after_position: int, limit: int) -> list[DomainEvent]:
    """Events in the order of their positions. Complete only for who holds `lock_out_writers`: nobody can commit late then."""
    statement = (
        select(domain_events)
        .where(domain_events.c.position > after_position)
        .order_by(domain_events.c.position)
        .limit(limit)
    )
    return [
        DomainEvent.model_validate({name: row[name] for name in DomainEvent.model_fields})
        for row in await transaction.all(statement)
    ]
