"""Column shapes shared by all tables."""

from __future__ import annotations

from sqlalchemy import Column, DateTime, MetaData, Text, text

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def tenant_column() -> Column[str]:
    """Filled by the session's tenant; the row-level security policy compares against the same setting."""
    return Column("tenant", Text, nullable=False, server_default=text("current_setting('perdure.tenant')"))


def time_column(name: str, *, nullable: bool = True) -> Column[object]:
    return Column(name, DateTime(timezone=True), nullable=nullable)
