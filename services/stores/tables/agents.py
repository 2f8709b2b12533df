"""Agents, their sessions and turns, and the approvals they ask for."""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    Double,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from services.stores.tables.base import metadata, tenant_column, time_column

agents = Table(
    "agents",
    metadata,
    tenant_column(),
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("owner", Text, nullable=False),
    Column("draft", JSONB, nullable=False),
    time_column("created_at", nullable=False),
    time_column("updated_at", nullable=False),
    time_column("removed_at"),
    Index("uq_agents_name", "tenant", "name", unique=True, postgresql_where=text("removed_at IS NULL")),
)

sessions = Table(
    "sessions",
    metadata,
    tenant_column(),
    Column("id", Text, primary_key=True),
    Column("agent_id", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("title", Text),
    Column("incognito", Boolean, nullable=False, server_default=text("false")),
    Column("forked_from", Text),
    Column("forked_after", BigInteger),
    Column("running", Text),
    time_column("created_at", nullable=False),
    Index(None, "user_id"),
)

messages = Table(
    "messages",
    metadata,
    tenant_column(),
    Column("ordinal", BigInteger, Identity(always=True), primary_key=True),
    Column("session_id", Text, nullable=False),
    Column("message_id", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("mode", Text),
    Column("text", Text),
    Column("citations", JSONB),
    Column("run_id", Text, nullable=False),
    Column("read_in", Integer),
    time_column("read_at"),
    time_column("created_at", nullable=False),
    UniqueConstraint("session_id", "message_id"),
    Index(None, "run_id"),
)

turns = Table(
    "turns",
    metadata,
    tenant_column(),
    Column("run_id", Text, primary_key=True),
    Column("session_id", Text),
    Column("agent_id", Text, nullable=False),
    Column("parent_run_id", Text),
    Column("depth", Integer, nullable=False, server_default=text("0")),
    Column("brief", JSONB),
    Column("config", JSONB),
    time_column("created_at", nullable=False),
    Index(None, "session_id"),
)

approvals = Table(
    "approvals",
    metadata,
    tenant_column(),
    Column("id", Text, primary_key=True),
    Column("run_id", Text, nullable=False),
    Column("own_run_id", Text, nullable=False),
    Column("session_id", Text),
    Column("step", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("risk", Text, nullable=False),
    Column("args_hash", Text, nullable=False),
    Column("approver_roles", ARRAY(Text), nullable=False),
    Column("space_id", Text),
    Column("state", Text, nullable=False),
    Column("decision", Text),
    Column("decided_by", Text),
    time_column("requested_at", nullable=False),
    time_column("expires_at", nullable=False),
    time_column("decided_at"),
    time_column("acknowledged_at"),
    Index(None, "run_id"),
    Index("ix_approvals_pending", "user_id", "id", postgresql_where=text("state IN ('pending', 'unknown_effect')")),
)

approval_contents = Table(
    "approval_contents",
    metadata,
    tenant_column(),
    Column("approval_id", Text, primary_key=True),
    Column("arguments", JSONB, nullable=False),
    Column("edited", JSONB),
    Column("reason", Text),
    Column("preview", Text),
    Column("feedback", Text),
)

session_sandboxes = Table(
    "session_sandboxes",
    metadata,
    tenant_column(),
    Column("owner", Text, primary_key=True),
    Column("sandbox_id", Text, nullable=False),
    time_column("created_at", nullable=False),
)

artifacts = Table(
    "artifacts",
    metadata,
    tenant_column(),
    Column("id", Text, primary_key=True),
    Column("run_id", Text, nullable=False),
    Column("session_id", Text),
    Column("user_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("blob_key", Text),
    time_column("created_at", nullable=False),
    UniqueConstraint("run_id", "name", "sha256"),
    Index(None, "session_id"),
)

usage = Table(
    "usage",
    metadata,
    tenant_column(),
    Column("run_id", Text, nullable=False),
    Column("step", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cost", Double),
    time_column("at", nullable=False),
    PrimaryKeyConstraint("run_id", "step"),
    Index("ix_usage_at", "tenant", "at"),
)

memories = Table(
    "memories",
    metadata,
    tenant_column(),
    Column("id", Text, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("confidence", Double, nullable=False),
    Column("run_id", Text),
    Column("model", Text, nullable=False),
    Column("vector", JSONB, nullable=False),
    time_column("created_at", nullable=False),
    time_column("updated_at", nullable=False),
    Index(None, "user_id"),
)

memory_switches = Table(
    "memory_switches",
    metadata,
    tenant_column(),
    Column("user_id", Text, primary_key=True),
    Column("enabled", Boolean, nullable=False),
)

session_grants = Table(
    "session_grants",
    metadata,
    tenant_column(),
    Column("session_id", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("risk", Text, nullable=False),
    Column("given_by", Text, nullable=False),
    time_column("created_at", nullable=False),
    PrimaryKeyConstraint("session_id", "tool", "risk"),
)
