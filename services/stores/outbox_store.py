"""The outbox as its deliverers see it: what waits, who holds a stream, what was sent and what has arrived (invariant 3).

A row is unsent, then sent, then delivered. A Kafka row is delivered when every consumer registered for its topic has
consumed its event; until then it may become unsent again, and with it all later rows of its stream, so that what is
sent again comes in order. All of this serves every tenant: callers open `every_tenant`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Double,
    Integer,
    Select,
    Text,
    and_,
    bindparam,
    delete,
    exists,
    func,
    literal,
    null,
    or_,
    select,
    text,
    update,
)

from schemas.domain_events import DomainEvent
from services.stores.database import Transaction
from services.stores.prepared import Prepared
from services.stores.tables.facts import consumed, consumers, domain_events, outbox

_LOCK_STREAMS = Prepared(
    text(
        "SELECT stream FROM unnest(CAST(:streams AS text[])) AS stream"
        " WHERE pg_try_advisory_xact_lock(hashtextextended(:prefix || stream, 0))"
    )
)
_EVENTS_AT = Prepared(
    select(domain_events).where(domain_events.c.position == func.any(bindparam("positions", type_=ARRAY(BigInteger))))
)
_MARK_SENT = Prepared(
    update(outbox)
    .where(outbox.c.id == func.any(bindparam("ids", type_=ARRAY(BigInteger))))
    .values(sent_at=func.clock_timestamp(), tries=outbox.c.tries + 1, error=null())
)
_MARK_DELIVERED = Prepared(
    update(outbox)
    .where(outbox.c.id == bindparam("row"))
    .values(
        sent_at=func.clock_timestamp(),
        delivered_at=func.clock_timestamp(),
        tries=outbox.c.tries + 1,
        error=bindparam("reason"),
    )
)
DOUBLINGS = 9
"""A row is sent again after a wait that doubles this often: from 10 s to 85 minutes."""


@dataclass(frozen=True)
class OutboxRow:
    """What must happen outside. `position` names the domain event that a Kafka row carries."""

    id: int
    tenant: str
    destination: str
    stream: str
    payload: dict[str, Any]
    position: int | None
    tries: int


async def due_streams(transaction: Transaction, destination: str, limit: int, skipped: Sequence[str] = ()) -> list[str]:
    """Streams with something unsent, the one that waits longest first; looks at the oldest `limit` rows."""
    asked = {"topic": destination, "most": limit, "skipped": list(skipped)}
    return [row["stream"] for row in await transaction.all(_due_streams(), asked)]


@cache
def _due_streams() -> Prepared:
    not_skipped = outbox.c.stream != func.all(bindparam("skipped", type_=ARRAY(Text)))
    oldest = select(outbox.c.id, outbox.c.stream).where(_unsent(), not_skipped).order_by(outbox.c.id)
    first = oldest.limit(bindparam("most", type_=Integer)).subquery()
    return Prepared(select(first.c.stream).group_by(first.c.stream).order_by(func.min(first.c.id)))


async def lock_streams(transaction: Transaction, destination: str, streams: Sequence[str]) -> list[str]:
    """Those of the streams that nobody else delivers now; they are the caller's until its transaction ends."""
    if not streams:
        return []
    parameters = {"streams": list(streams), "prefix": f"outbox:{destination}:"}
    return [row["stream"] for row in await transaction.all(_LOCK_STREAMS, parameters)]


async def unsent(transaction: Transaction, destination: str, streams: Sequence[str], limit: int) -> list[OutboxRow]:
    """Unsent rows of streams that the caller has locked, in the order they were written."""
    if not streams:
        return []
    asked = {"topic": destination, "streams": list(streams), "most": limit}
    return [
        OutboxRow(**{name: row[name] for name in OutboxRow.__dataclass_fields__})
        for row in await transaction.all(_unsent_rows(), asked)
    ]


@cache
def _unsent_rows() -> Prepared:
    of_streams = and_(_unsent(), outbox.c.stream == func.any(bindparam("streams", type_=ARRAY(Text))))
    return Prepared(select(outbox).where(of_streams).order_by(outbox.c.id).limit(bindparam("most", type_=Integer)))


async def events_at(transaction: Transaction, positions: Sequence[int]) -> dict[int, DomainEvent]:
    """Domain events by position, as they are now: what was scrubbed since is not in them."""
    found = await transaction.all(_EVENTS_AT, {"positions": list(positions)})
    return {row["position"]: DomainEvent.model_validate({k: row[k] for k in DomainEvent.model_fields}) for row in found}


async def mark_sent(transaction: Transaction, ids: Sequence[int]) -> None:
    if ids:
        await transaction.run(_MARK_SENT, {"ids": list(ids)})


async def mark_delivered(transaction: Transaction, outbox_id: int, error: str | None = None) -> None:
    """`error` says why it was given up, when it was."""
    await transaction.run(_MARK_DELIVERED, {"row": outbox_id, "reason": error})


async def count_try(transaction: Transaction, outbox_id: int, error: str) -> None:
    """A try that led to nothing."""
    tried = {"tries": outbox.c.tries + 1, "error": error}
    await transaction.execute(update(outbox).where(outbox.c.id == outbox_id).values(**tried))


async def settle(transaction: Transaction, topic: str) -> int:
    """Marks as delivered what every consumer of the topic has consumed; how many rows. Without consumers: all that was sent."""
    return await transaction.run(_settle(), {"topic": topic})


@cache
def _settle() -> Prepared:
    arrived = and_(
        outbox.c.destination == bindparam("topic"),
        outbox.c.delivered_at.is_(None),
        outbox.c.sent_at.is_not(None),
        ~exists(select(literal(1)).where(_owed()).correlate(outbox)),
    )
    return Prepared(update(outbox).where(arrived).values(delivered_at=func.clock_timestamp()))


async def overdue_streams(transaction: Transaction, topic: str, limit: int, after_s: float) -> list[str]:
    """Streams with rows that some consumer has not had `after_s` after they were sent; twice that after the second time,
    and so on."""
    asked = {"topic": topic, "most": limit, "after_s": after_s}
    return [row["stream"] for row in await transaction.all(_overdue_streams(), asked)]


@cache
def _overdue_streams() -> Prepared:
    doubled = func.power(2, func.least(func.greatest(outbox.c.tries - 1, 0), DOUBLINGS))
    wait = func.make_interval(0, 0, 0, 0, 0, 0, bindparam("after_s", type_=Double) * doubled)
    return Prepared(_undelivered_streams(outbox.c.sent_at < func.clock_timestamp() - wait))


async def streams_sent_before(transaction: Transaction, topic: str, limit: int, moment: datetime) -> list[str]:
    """Streams with rows sent before then that some consumer has not had."""
    statement = _undelivered_streams(outbox.c.sent_at < bindparam("moment"))
    asked = {"topic": topic, "most": limit, "moment": moment}
    return [row["stream"] for row in await transaction.all(statement, asked)]


async def clock(transaction: Transaction) -> datetime:
    """Postgres' clock, by which rows are marked as sent."""
    moment: datetime = await transaction.scalar(select(func.clock_timestamp()))
    return moment


async def unsend(transaction: Transaction, topic: str, streams: Sequence[str]) -> None:
    """Makes all undelivered rows of the streams unsent. The caller holds the streams' locks."""
    if streams:
        of_streams = and_(outbox.c.destination == topic, outbox.c.delivered_at.is_(None), outbox.c.stream.in_(streams))
        await transaction.execute(update(outbox).where(of_streams).values(sent_at=None))


async def start_is_pending(transaction: Transaction, destination: str, stream: str) -> bool:
    """Whether an undelivered row will still start the run of this stream."""
    waits = and_(
        outbox.c.delivered_at.is_(None),
        outbox.c.destination == destination,
        outbox.c.stream == stream,
        outbox.c.payload["operation"].astext == "start",
    )
    return await transaction.scalar(select(outbox.c.id).where(waits).limit(1)) is not None


async def prune_delivered(transaction: Transaction, before: datetime) -> int:
    """Drops rows delivered before then, except those given up with an error: these stay a week longer to be looked at."""
    kept_longer = before - timedelta(days=7)
    old = or_(
        and_(outbox.c.delivered_at < before, outbox.c.error.is_(None)),
        outbox.c.delivered_at < kept_longer,
    )
    return (await transaction.execute(delete(outbox).where(old))).rowcount


def _unsent() -> ColumnElement[bool]:
    of_topic = outbox.c.destination == bindparam("topic")
    return and_(of_topic, outbox.c.delivered_at.is_(None), outbox.c.sent_at.is_(None))


def _undelivered_streams(late: ColumnElement[bool]) -> Select[tuple[str]]:
    of_topic = outbox.c.destination == bindparam("topic")
    return (
        select(outbox.c.stream)
        .where(of_topic, outbox.c.delivered_at.is_(None), outbox.c.sent_at.is_not(None), late)
        .group_by(outbox.c.stream)
        .order_by(func.min(outbox.c.id))
        .limit(bindparam("most", type_=Integer))
    )


def _owed() -> ColumnElement[bool]:
    """For a row of `outbox`: a consumer that gets it and has not had it. Consumers leave no gaps, so later ones count."""
    has_had = exists(
        select(literal(1))
        .where(
            consumed.c.tenant == outbox.c.tenant,
            consumed.c.consumer == consumers.c.name,
            consumed.c.stream == outbox.c.stream,
            consumed.c.stream_version >= outbox.c.stream_version,
        )
        .correlate(outbox, consumers)
    )
    return and_(consumers.c.topic == outbox.c.destination, consumers.c.start_position < outbox.c.position, ~has_had)
