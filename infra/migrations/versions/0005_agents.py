"""Agents, their sessions and turns, and approvals."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from infra.migrations.row_level_security import protect

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

TENANT_TABLES = (
    "agents",
    "approval_contents",
    "approvals",
    "artifacts",
    "memories",
    "memory_switches",
    "messages",
    "session_grants",
    "session_sandboxes",
    "sessions",
    "turns",
    "usage",
)


def upgrade() -> None:
    for create in (
        _agents,
        _sessions,
        _messages,
        _turns,
        _approvals,
        _approval_contents,
        _session_grants,
        _session_sandboxes,
        _artifacts,
        _usage,
        _memories,
        _memory_switches,
    ):
        create()
    protect(TENANT_TABLES)


def _agents() -> None:
    op.create_table(
        "agents",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("draft", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("removed_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agents")),
    )
    op.create_index(
        "uq_agents_name", "agents", ["tenant", "name"], unique=True, postgresql_where=sa.text("removed_at IS NULL")
    )


def _sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("incognito", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("forked_from", sa.Text(), nullable=True),
        sa.Column("forked_after", sa.BigInteger(), nullable=True),
        sa.Column("running", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
    )
    op.create_index(op.f("ix_sessions_user_id"), "sessions", ["user_id"], unique=False)


def _messages() -> None:
    op.create_table(
        "messages",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("ordinal", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=True),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("citations", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("read_in", sa.Integer(), nullable=True),
        sa.Column("read_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("ordinal", name=op.f("pk_messages")),
        sa.UniqueConstraint("session_id", "message_id", name=op.f("uq_messages_session_id_message_id")),
    )
    op.create_index(op.f("ix_messages_run_id"), "messages", ["run_id"], unique=False)


def _turns() -> None:
    op.create_table(
        "turns",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=True),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("parent_run_id", sa.Text(), nullable=True),
        sa.Column("depth", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("brief", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("config", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_turns")),
    )
    op.create_index(op.f("ix_turns_session_id"), "turns", ["session_id"], unique=False)


def _approvals() -> None:
    op.create_table(
        "approvals",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("own_run_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=True),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("risk", sa.Text(), nullable=False),
        sa.Column("args_hash", sa.Text(), nullable=False),
        sa.Column("approver_roles", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("space_id", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("decision", sa.Text(), nullable=True),
        sa.Column("decided_by", sa.Text(), nullable=True),
        sa.Column("requested_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("acknowledged_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_approvals")),
    )
    op.create_index(
        "ix_approvals_pending",
        "approvals",
        ["user_id", "id"],
        unique=False,
        postgresql_where=sa.text("state IN ('pending', 'unknown_effect')"),
    )
    op.create_index(op.f("ix_approvals_run_id"), "approvals", ["run_id"], unique=False)


def _approval_contents() -> None:
    op.create_table(
        "approval_contents",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("approval_id", sa.Text(), nullable=False),
        sa.Column("arguments", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("edited", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("preview", sa.Text(), nullable=True),
        sa.Column("feedback", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("approval_id", name=op.f("pk_approval_contents")),
    )


def _session_grants() -> None:
    op.create_table(
        "session_grants",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("risk", sa.Text(), nullable=False),
        sa.Column("given_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("session_id", "tool", "risk", name=op.f("pk_session_grants")),
    )


def _session_sandboxes() -> None:
    op.create_table(
        "session_sandboxes",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("sandbox_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("owner", name=op.f("pk_session_sandboxes")),
    )


def _artifacts() -> None:
    op.create_table(
        "artifacts",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=True),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("blob_key", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_artifacts")),
        sa.UniqueConstraint("run_id", "name", "sha256", name=op.f("uq_artifacts_run_id")),
    )
    op.create_index(op.f("ix_artifacts_session_id"), "artifacts", ["session_id"], unique=False)


def _usage() -> None:
    op.create_table(
        "usage",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost", sa.Double(), nullable=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "step", name=op.f("pk_usage")),
    )
    op.create_index("ix_usage_at", "usage", ["tenant", "at"], unique=False)


def _memories() -> None:
    op.create_table(
        "memories",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("confidence", sa.Double(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("vector", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_memories")),
    )
    op.create_index(op.f("ix_memories_user_id"), "memories", ["user_id"], unique=False)


def _memory_switches() -> None:
    op.create_table(
        "memory_switches",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", name=op.f("pk_memory_switches")),
    )
