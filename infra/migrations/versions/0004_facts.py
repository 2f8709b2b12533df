"""The event log, the outbox and who has heard of it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from infra.migrations.row_level_security import protect
from services.stores.tables.facts import TransactionId

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TENANT_TABLES = (
    "audit_log",
    "consumed",
    "domain_events",
    "effect_keys",
    "idempotency_keys",
    "outbox",
)


def upgrade() -> None:
    for create in (
        _audit_log,
        _consumed,
        _consumers,
        _domain_events,
        _effect_keys,
        _idempotency_keys,
        _outbox,
    ):
        create()
    protect(TENANT_TABLES)


def _audit_log() -> None:
    op.create_table(
        "audit_log",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("stream", sa.Text(), nullable=False),
        sa.Column("stream_version", sa.Integer(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=True),
        sa.Column("data", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_log")),
        sa.UniqueConstraint(
            "tenant", "stream", "stream_version", name=op.f("uq_audit_log_tenant_stream_stream_version")
        ),
    )


def _consumed() -> None:
    op.create_table(
        "consumed",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("consumer", sa.Text(), nullable=False),
        sa.Column("stream", sa.Text(), nullable=False),
        sa.Column("stream_version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "consumer", "stream", "stream_version", name=op.f("pk_consumed")),
    )


def _consumers() -> None:
    op.create_table(
        "consumers",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("start_position", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", "topic", name=op.f("pk_consumers")),
    )


def _domain_events() -> None:
    op.create_table(
        "domain_events",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("position", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("xid", TransactionId(), server_default=sa.text("pg_current_xact_id()"), nullable=False),
        sa.Column("stream", sa.Text(), nullable=False),
        sa.Column("stream_version", sa.Integer(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("schema_version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("data", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("actor", sa.Text(), nullable=True),
        sa.Column("cause", sa.Text(), nullable=True),
        sa.Column("correlation", sa.Text(), nullable=True),
        sa.Column("traceparent", sa.Text(), nullable=True),
        sa.Column("time", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("position", name=op.f("pk_domain_events")),
        sa.UniqueConstraint(
            "tenant", "stream", "stream_version", name=op.f("uq_domain_events_tenant_stream_stream_version")
        ),
    )


def _effect_keys() -> None:
    op.create_table(
        "effect_keys",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("request_hash", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("result", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_effect_keys")),
    )


def _idempotency_keys() -> None:
    op.create_table(
        "idempotency_keys",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("body_hash", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("response", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "actor", "key", name=op.f("pk_idempotency_keys")),
    )


def _outbox() -> None:
    op.create_table(
        "outbox",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("destination", sa.Text(), nullable=False),
        sa.Column("stream", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=True),
        sa.Column("stream_version", sa.Integer(), nullable=True),
        sa.Column("payload", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("tries", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("delivered_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
    )
    op.create_index(
        "ix_outbox_open",
        "outbox",
        ["destination", "stream", "id"],
        unique=False,
        postgresql_where=sa.text("delivered_at IS NULL"),
    )
    op.create_index(
        "ix_outbox_unsent",
        "outbox",
        ["destination", "id"],
        unique=False,
        postgresql_where=sa.text("sent_at IS NULL AND delivered_at IS NULL"),
    )
