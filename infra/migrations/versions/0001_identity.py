"""Tenants, people, keys and spaces."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from infra.migrations.row_level_security import protect

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TENANT_TABLES = (
    "api_keys",
    "groups",
    "memberships",
    "space_grants",
    "spaces",
    "users",
)


def upgrade() -> None:
    for create in (
        _api_keys,
        _groups,
        _memberships,
        _space_grants,
        _spaces,
        _tenants,
        _users,
    ):
        create()
    protect(TENANT_TABLES)
    protect(["tenants"], column="id")


def _api_keys() -> None:
    op.create_table(
        "api_keys",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("scopes", sa.ARRAY(sa.Text()), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("hash", name=op.f("uq_api_keys_hash")),
    )


def _groups() -> None:
    op.create_table(
        "groups",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_groups")),
        sa.UniqueConstraint("tenant", "name", name=op.f("uq_groups_tenant_name")),
    )


def _memberships() -> None:
    op.create_table(
        "memberships",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("group_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("group_id", "user_id", name=op.f("pk_memberships")),
    )
    op.create_index(op.f("ix_memberships_user_id"), "memberships", ["user_id"], unique=False)


def _space_grants() -> None:
    op.create_table(
        "space_grants",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("space_id", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("space_id", "principal", name=op.f("pk_space_grants")),
    )


def _spaces() -> None:
    op.create_table(
        "spaces",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column(
            "settings", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("tombstoned_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("removed_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_spaces")),
    )
    op.create_index(
        "uq_spaces_live_name",
        "spaces",
        ["tenant", "name"],
        unique=True,
        postgresql_where=sa.text("tombstoned_at IS NULL"),
    )


def _tenants() -> None:
    op.create_table(
        "tenants",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tenants")),
    )


def _users() -> None:
    op.create_table(
        "users",
        sa.Column("tenant", sa.Text(), server_default=sa.text("current_setting('perdure.tenant')"), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("disabled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("tenant", "email", name=op.f("uq_users_tenant_email")),
    )
