"""Tenants, people, keys and spaces."""

from __future__ import annotations

from sqlalchemy import ARRAY, Column, Index, PrimaryKeyConstraint, Table, Text, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB

from services.stores.tables.base import metadata, tenant_column, time_column

tenants = Table(
    "tenants",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    time_column("created_at", nullable=False),
)

users = Table(
    "users",
    metadata,
    tenant_column(),
    Column("id", Text, primary_key=True),
    Column("email", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    time_column("disabled_at"),
    time_column("created_at", nullable=False),
    UniqueConstraint("tenant", "email"),
)

groups = Table(
    "groups",
    metadata,
    tenant_column(),
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    time_column("created_at", nullable=False),
    UniqueConstraint("tenant", "name"),
)

memberships = Table(
    "memberships",
    metadata,
    tenant_column(),
    Column("group_id", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    PrimaryKeyConstraint("group_id", "user_id"),
    Index(None, "user_id"),
)

api_keys = Table(
    "api_keys",
    metadata,
    tenant_column(),
    Column("id", Text, primary_key=True),
    Column("hash", Text, nullable=False, unique=True),
    Column("user_id", Text, nullable=False),
    Column("scopes", ARRAY(Text), nullable=True),
    time_column("expires_at"),
    time_column("revoked_at"),
    time_column("created_at", nullable=False),
)

spaces = Table(
    "spaces",
    metadata,
    tenant_column(),
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=True),
    Column("settings", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    time_column("created_at", nullable=False),
    time_column("tombstoned_at"),
    time_column("removed_at"),
    Index("uq_spaces_live_name", "tenant", "name", unique=True, postgresql_where=text("tombstoned_at IS NULL")),
)

space_grants = Table(
    "space_grants",
    metadata,
    tenant_column(),
    Column("space_id", Text, nullable=False),
    Column("principal", Text, nullable=False),
    Column("role", Text, nullable=False),
    PrimaryKeyConstraint("space_id", "principal"),
)
