"""Appends facts: event, read model and outbox row in the one transaction of the caller (invariants 2 and 3)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, bindparam, select, text, update
from sqlalchemy.dialects.postgresql import JSONB

from schemas.domain_events import EVENT_TYPES, DomainEvent, EventDraft, topic_of
from services.stores import projections
from services.stores.database import Transaction
from services.stores.prepared import Prepared
from services.stores.tables.facts import domain_events

MAX_EVENT_BYTES = 64_000
OUTBOX_CHANNEL = "perdure_outbox"
_APPEND = Prepared(
    text(
        """
    WITH event AS (
        INSERT INTO domain_events (stream, stream_version, type, data, actor, cause, correlation, traceparent, time)
        SELECT :stream, coalesce(max(stream_version), 0) + 1, :type, :data, :actor, :cause, :correlation, :traceparent, :time
        FROM domain_events WHERE stream = :stream
        RETURNING position, stream_version
    )
    INSERT INTO outbox (destination, stream, payload, position, stream_version, created_at)
    SELECT :destination, :stream, '{}'::jsonb, position, stream_version, :time FROM event
    RETURNING position, stream_version, pg_notify(:channel, :destination)
    """
    ).bindparams(bindparam("data", type_=JSONB), bindparam("channel", OUTBOX_CHANNEL))
)
"""Event and outbox row in one statement, with the stream's next version: every step of every run writes some of these."""
_ENQUEUE = Prepared(
    text(
        """
        INSERT INTO outbox (destination, stream, payload, created_at)
        VALUES (:destination, :stream, :payload, :created_at)
        RETURNING id, pg_notify(:channel, :destination)
        """
    ).bindparams(bindparam("payload", type_=JSONB), bindparam("channel", OUTBOX_CHANNEL))
)
"""The notice is heard after commit; here it costs no round trip."""


async def append(
    transaction: Transaction,
    draft: EventDraft,
    *,
    actor: str | None = None,
    correlation: str | None = None,
    traceparent: str | None = None,
) -> DomainEvent:
    """Writes one event, applies it to its read model and queues it for Kafka. Streams are locked in the order callers append."""
    if draft.type not in EVENT_TYPES:
        raise ValueError(f"unknown event type {draft.type}")
    if len(json.dumps(draft.data)) > MAX_EVENT_BYTES:
        raise ValueError(f"the data of {draft.type} is over {MAX_EVENT_BYTES} bytes: events hold references, not text")
    await lock_stream(transaction, draft.stream)
    row = {
        "stream": draft.stream,
        "type": draft.type,
        "data": draft.data,
        "actor": actor,
        "cause": draft.cause,
        "correlation": correlation,
        "traceparent": traceparent,
        "time": transaction.now,
    }
    (written,) = await transaction.all(_APPEND, {**row, "destination": topic_of(draft.stream)})
    place = {"position": written["position"], "stream_version": written["stream_version"]}
    event = DomainEvent(tenant=transaction.tenant, **place, **row)
    await projections.apply(transaction, event)
    return event


async def lock_stream(transaction: Transaction, stream: str) -> None:
    """Whoever will write to a stream locks it, and only then its read model's row: in any other order two of them could
    wait for each other. `get(..., for_update=True)` of the stores does both."""
    await transaction.lock(f"stream:{stream}")


async def enqueue(
    transaction: Transaction,
    destination: str,
    stream: str,
    payload: dict[str, Any],
) -> int:
    """Queues what must happen outside after this commit."""
    row = {"destination": destination, "stream": stream, "payload": payload, "created_at": transaction.now}
    return int(await transaction.scalar(_ENQUEUE, row))


async def of_stream(transaction: Transaction, stream: str, *, after: int = 0, limit: int = 100) -> list[DomainEvent]:
    statement = (
        select(domain_events)
        .where(domain_events.c.stream == stream, domain_events.c.stream_version > after)
        .order_by(domain_events.c.stream_version)
        .limit(limit)
    )
    return [_event(row) for row in await transaction.all(statement)]


async def after_position(transaction: Transaction, position: int, limit: int = 1_000) -> list[DomainEvent]:
    """Events past `position`, stopping at the oldest transaction still running: a later commit could still slip in before."""
    statement = (
        select(domain_events)
        .where(domain_events.c.position > position, text("xid < pg_snapshot_xmin(pg_current_snapshot())"))
        .order_by(domain_events.c.position)
        .limit(limit)
    )
    return [_event(row) for row in await transaction.all(statement)]


async def scrub(transaction: Transaction, streams: Sequence[str], fields: Sequence[str]) -> None:
    """Takes names and titles out of a removed document's events; the rest of the fact stays."""
    cleaned: ColumnElement[Any] = domain_events.c.data
    for field in fields:
        cleaned = cleaned.op("-")(field)
    statement = update(domain_events).where(domain_events.c.stream.in_(streams)).values(data=cleaned)
    await transaction.execute(statement)


def _event(row: Any) -> DomainEvent:
    return DomainEvent.model_validate({key: row[key] for key in DomainEvent.model_fields})
