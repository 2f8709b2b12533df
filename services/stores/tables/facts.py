"""The event log, what must happen outside after a commit, and who has heard of it."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Identity, Index, Integer, PrimaryKeyConstraint, Table, Text, text
from sqlalchemy import UniqueConstraint as Unique
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import UserDefinedType

from services.stores.tables.base import metadata, tenant_column, time_column


class TransactionId(UserDefinedType[int]):
    """Postgres' `xid8`: the transaction that wrote a row, comparable with `pg_snapshot_xmin`."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        return "xid8"


domain_events = Table(
    "domain_events",
    metadata,
    tenant_column(),
    Column("position", BigInteger, Identity(always=True), primary_key=True),
    Column("xid", TransactionId, nullable=False, server_default=text("pg_current_xact_id()")),
    Column("stream", Text, nullable=False),
    Column("stream_version", Integer, nullable=False),
    Column("type", Text, nullable=False),
    Column("schema_version", Integer, nullable=False, server_default=text("1")),
    Column("data", JSONB, nullable=False),
    Column("actor", Text),
    Column("cause", Text),
    Column("correlation", Text),
    Column("traceparent", Text),
    time_column("time", nullable=False),
    Unique("tenant", "stream", "stream_version"),
)

outbox = Table(
    "outbox",
    metadata,
    tenant_column(),
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("destination", Text, nullable=False),
    Column("stream", Text, nullable=False),
    Column("position", BigInteger),
    Column("stream_version", Integer),
    Column("payload", JSONB, nullable=False),
    Column("tries", Integer, nullable=False, server_default=text("0")),
    Column("error", Text),
    time_column("created_at", nullable=False),
    time_column("sent_at"),
    time_column("delivered_at"),
    Index("ix_outbox_open", "destination", "stream", "id", postgresql_where=text("delivered_at IS NULL")),
    Index("ix_outbox_unsent", "destination", "id", postgresql_where=text("sent_at IS NULL AND delivered_at IS NULL")),
)

consumers = Table(
    "consumers",
    metadata,
    Column("name", Text, nullable=False),
    Column("topic", Text, nullable=False),
    Column("start_position", BigInteger, nullable=False),
    PrimaryKeyConstraint("name", "topic"),
)

consumed = Table(
    "consumed",
    metadata,
    tenant_column(),
    Column("consumer", Text, nullable=False),
    Column("stream", Text, nullable=False),
    Column("stream_version", Integer, nullable=False),
    PrimaryKeyConstraint("tenant", "consumer", "stream", "stream_version"),
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    tenant_column(),
    Column("actor", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("body_hash", Text, nullable=False),
    Column("status", Integer),
    Column("response", JSONB),
    time_column("created_at", nullable=False),
    time_column("expires_at", nullable=False),
    PrimaryKeyConstraint("tenant", "actor", "key"),
)

effect_keys = Table(
    "effect_keys",
    metadata,
    tenant_column(),
    Column("key", Text, primary_key=True),
    Column("request_hash", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("result", JSONB),
    time_column("created_at", nullable=False),
)

audit_log = Table(
    "audit_log",
    metadata,
    tenant_column(),
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("stream", Text, nullable=False),
    Column("stream_version", Integer, nullable=False),
    Column("type", Text, nullable=False),
    Column("actor", Text),
    Column("data", JSONB, nullable=False),
    time_column("at", nullable=False),
    Unique("tenant", "stream", "stream_version"),
)
