"""Runs, their streams, and answers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from infra.migrations.row_level_security import protect

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TENANT_TABLES = (
    "answers",
    "run_events",
    "run_steps",
    "run_stream_writers",
    "run_streams",
    "runs",
    "sources",
)


def upgrade() -> None:
    for create in (
        _answers,
        _run_events,
        _run_steps,
        _run_stream_writers,
        _run_streams,
        _runs,
        _sources,
    ):
        create()
    protect(TENANT_TABLES)


def _answers() -> None:
    op.create_table(
        "answers",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("request", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("passages", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("answered", sa.Boolean(), nullable=True),
        sa.Column("citations", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("usage", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_answers")),
        sa.UniqueConstraint("run_id", name=op.f("uq_answers_run_id")),
    )


def _run_events() -> None:
    op.create_table(
        "run_events",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("data", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "seq", name=op.f("pk_run_events")),
    )


def _run_steps() -> None:
    op.create_table(
        "run_steps",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("failures", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("result", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.PrimaryKeyConstraint("run_id", "step", name=op.f("pk_run_steps")),
    )


def _run_stream_writers() -> None:
    op.create_table(
        "run_stream_writers",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Text(), nullable=False),
        sa.Column("wrote_text", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "step", name=op.f("pk_run_stream_writers")),
    )


def _run_streams() -> None:
    op.create_table(
        "run_streams",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("epoch", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("seq", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_run_streams")),
    )


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("actor_user", sa.Text(), nullable=True),
        sa.Column("actor_key", sa.Text(), nullable=True),
        sa.Column("contract", sa.Text(), nullable=False),
        sa.Column("input_ref", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("execution_id", sa.Text(), nullable=True),
        sa.Column("parent_id", sa.Text(), nullable=True),
        sa.Column("subject", sa.Text(), nullable=True),
        sa.Column("space_id", sa.Text(), nullable=True),
        sa.Column("cancelled_by", sa.Text(), nullable=True),
        sa.Column("waiting_for", sa.Text(), nullable=True),
        sa.Column("waiting_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("error", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("usage", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("cancel_requested_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("progressed_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
    )
    op.create_index("ix_runs_open", "runs", ["state"], unique=False, postgresql_where=sa.text("ended_at IS NULL"))
    op.create_index(op.f("ix_runs_subject"), "runs", ["subject"], unique=False)


def _sources() -> None:
    op.create_table(
        "sources",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("record", "document_id", "version", name=op.f("pk_sources")),
    )
    op.create_index(op.f("ix_sources_document_id"), "sources", ["document_id"], unique=False)
