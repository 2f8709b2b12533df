"""Who listens to which topic, from where on, and how far each has come in every stream.

A consumer consumes a stream's events one after the other and leaves no gap, so its newest row per stream says it all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from sqlalchemy import and_, delete, exists, func, literal, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import aliased

from services.stores.database import Transaction
from services.stores.tables.facts import consumed, consumers, domain_events


async def register(transaction: Transaction, consumer: str, topics: Iterable[str]) -> None:
    """From here on the relay owes the consumer every event of these topics. A known consumer keeps its start."""
    newest = await transaction.scalar(select(func.coalesce(func.max(domain_events.c.position), 0)))
    for topic in topics:
        row = insert(consumers).values(name=consumer, topic=topic, start_position=newest)
        await transaction.execute(row.on_conflict_do_nothing())


async def unregister(transaction: Transaction, consumer: str) -> None:
    """Nothing is owed to it any more."""
    await transaction.execute(delete(consumed).where(consumed.c.consumer == consumer))
    await transaction.execute(delete(consumers).where(consumers.c.name == consumer))


async def start_positions(transaction: Transaction, consumer: str) -> dict[str, int]:
    """By topic: events up to that position are none of this consumer's business."""
    statement = select(consumers.c.topic, consumers.c.start_position).where(consumers.c.name == consumer)
    return {row["topic"]: row["start_position"] for row in await transaction.all(statement)}


async def newest_versions(transaction: Transaction, consumer: str, streams: Mapping[str, int]) -> dict[str, int]:
    """The last version had of each stream (stream -> start position); where none was, the one before the first that is owed.

    A stream that has no event after the start position is left out.
    """
    of_streams = and_(consumed.c.consumer == consumer, consumed.c.stream.in_(list(streams)))
    had = select(consumed.c.stream, func.max(consumed.c.stream_version).label("version")).where(of_streams)
    found = {row["stream"]: int(row["version"]) for row in await transaction.all(had.group_by(consumed.c.stream))}
    for stream in streams.keys() - found.keys():
        owed = and_(domain_events.c.stream == stream, domain_events.c.position > streams[stream])
        first = await transaction.scalar(select(func.min(domain_events.c.stream_version)).where(owed))
        if first is not None:
            found[stream] = int(first) - 1
    return found


async def mark_consumed(transaction: Transaction, consumer: str, versions: Collection[tuple[str, int]]) -> None:
    """Pairs of stream and version. A second mark of the same pair breaks its transaction: two workers had one event."""
    if versions:
        rows = [{"consumer": consumer, "stream": stream, "stream_version": version} for stream, version in versions]
        await transaction.execute(insert(consumed), rows)


async def prune_consumed(transaction: Transaction) -> int:
    """Drops all but the newest row per consumer and stream."""
    later = aliased(consumed)
    is_older = exists(
        select(literal(1)).where(
            later.c.tenant == consumed.c.tenant,
            later.c.consumer == consumed.c.consumer,
            later.c.stream == consumed.c.stream,
            later.c.stream_version > consumed.c.stream_version,
        )
    )
    return (await transaction.execute(delete(consumed).where(is_older))).rowcount
