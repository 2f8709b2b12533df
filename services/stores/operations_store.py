"""Numbers for operators over all tenants: what waits, what is open, what was given up."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select

from services.stores.database import Transaction
from services.stores.tables.facts import outbox
from services.stores.tables.runs import runs


@dataclass(frozen=True)
class OutboxLag:
    """Undelivered rows of one destination, and how long the oldest has waited."""

    destination: str
    rows: int
    oldest_s: float


@dataclass(frozen=True)
class OpenRuns:
    """Runs of one kind and state that have not ended."""

    kind: str
    state: str
    runs: int


async def outbox_lags(transaction: Transaction) -> list[OutboxLag]:
    age = func.extract("epoch", func.now() - func.min(outbox.c.created_at))
    statement = (
        select(outbox.c.destination, func.count().label("rows"), age.label("oldest_s"))
        .where(outbox.c.delivered_at.is_(None))
        .group_by(outbox.c.destination)
    )
    return [
        OutboxLag(row["destination"], int(row["rows"]), max(float(row["oldest_s"]), 0.0))
        for row in await transaction.all(statement)
    ]


async def open_runs(transaction: Transaction) -> list[OpenRuns]:
    statement = (
        select(runs.c.kind, runs.c.state, func.count().label("runs"))
        .where(runs.c.ended_at.is_(None))
        .group_by(runs.c.kind, runs.c.state)
    )
    return [OpenRuns(row["kind"], row["state"], int(row["runs"])) for row in await transaction.all(statement)]
