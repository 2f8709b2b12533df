"""Runs, their steps, the streams people watch, and answers."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, PrimaryKeyConstraint, Table, Text, text
from sqlalchemy.dialects.postgresql import JSONB

from services.stores.tables.base import metadata, tenant_column, time_column

runs = Table(
    "runs",
    metadata,
    tenant_column(),
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("actor_user", Text),
    Column("actor_key", Text),
    Column("contract", Text, nullable=False),
    Column("input_ref", JSONB, nullable=False),
    Column("workflow_id", Text, nullable=False),
    Column("execution_id", Text),
    Column("parent_id", Text),
    Column("subject", Text),
    Column("space_id", Text),
    Column("cancelled_by", Text),
    Column("waiting_for", Text),
    time_column("waiting_until"),
    Column("error", JSONB),
    Column("usage", JSONB),
    time_column("cancel_requested_at"),
    time_column("created_at", nullable=False),
    time_column("started_at"),
    time_column("ended_at"),
    time_column("progressed_at"),
    Index("ix_runs_open", "state", postgresql_where=text("ended_at IS NULL")),
    Index(None, "subject"),
)

run_steps = Table(
    "run_steps",
    metadata,
    tenant_column(),
    Column("run_id", Text, nullable=False),
    Column("step", Text, nullable=False),
    Column("failures", Integer, nullable=False, server_default=text("0")),
    Column("result", JSONB),
    PrimaryKeyConstraint("run_id", "step"),
)

run_streams = Table(
    "run_streams",
    metadata,
    tenant_column(),
    Column("run_id", Text, primary_key=True),
    Column("epoch", Integer, nullable=False, server_default=text("0")),
    Column("seq", BigInteger, nullable=False, server_default=text("0")),
)

run_stream_writers = Table(
    "run_stream_writers",
    metadata,
    tenant_column(),
    Column("run_id", Text, nullable=False),
    Column("step", Text, nullable=False),
    Column("attempt", Text, nullable=False),
    Column("wrote_text", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("run_id", "step"),
)

run_events = Table(
    "run_events",
    metadata,
    tenant_column(),
    Column("run_id", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("type", Text, nullable=False),
    Column("data", JSONB, nullable=False),
    time_column("at", nullable=False),
    PrimaryKeyConstraint("run_id", "seq"),
)

sources = Table(
    "sources",
    metadata,
    tenant_column(),
    Column("record", Text, nullable=False),
    Column("document_id", Text, nullable=False),
    Column("version", Integer, nullable=False),
    PrimaryKeyConstraint("record", "document_id", "version"),
    Index(None, "document_id"),
)

answers = Table(
    "answers",
    metadata,
    tenant_column(),
    Column("id", Text, primary_key=True),
    Column("run_id", Text, nullable=False, unique=True),
    Column("user_id", Text, nullable=False),
    Column("question", Text, nullable=False),
    Column("request", JSONB, nullable=False),
    Column("passages", JSONB),
    Column("answer", Text),
    Column("answered", Boolean),
    Column("citations", JSONB),
    Column("usage", JSONB),
    Column("model", Text, nullable=False),
    time_column("created_at", nullable=False),
)
