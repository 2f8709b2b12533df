"""The read models dropped and made again from the events (invariant 2)."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.errors import TransientFailure
from services.stores import event_replay, projections
from services.stores.database import Database

PAGE = 1_000
TRIES = 5


@dataclass(frozen=True)
class Rebuilt:
    """Events replayed, and rows per read model afterwards."""

    events: int
    rows: dict[str, int]


async def rebuild_read_models(database: Database) -> Rebuilt:
    """All in one transaction: others read the old rows until it commits, and writers wait.

    Raises TransientFailure when writers held the tables too long, EngineDown when Postgres goes away; nothing has
    changed then.
    """
    for tries_left in reversed(range(TRIES)):
        try:
            return await _rebuild(database)
        except TransientFailure:  # a deadlock with a writer that held a row when we came
            if not tries_left:
                raise
    raise AssertionError("unreachable")


async def _rebuild(database: Database) -> Rebuilt:
    events, position = 0, 0
    async with database.every_tenant("a rebuild replays the events of all tenants") as transaction:
        await event_replay.lock_out_writers(transaction)
        await projections.clear(transaction)
        while page := await event_replay.page(transaction, position, PAGE):
            for event in page:
                await projections.apply(transaction, event)
            events, position = events + len(page), page[-1].position
        return Rebuilt(events, await projections.count(transaction))
