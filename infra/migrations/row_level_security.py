"""Lays row-level security on new tables: every migration that creates some calls this."""

from __future__ import annotations

from collections.abc import Sequence

from alembic import op

EVERY_TENANT = "*"


def protect(tables: Sequence[str], column: str = "tenant") -> None:
    """Rows are seen and accepted when their tenant is the transaction's `perdure.tenant`, by the tables' owner too."""
    setting = "current_setting('perdure.tenant', true)"
    for table in tables:
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        mine = f"{setting} = {column} OR {setting} = '{EVERY_TENANT}'"
        op.execute(f"CREATE POLICY one_tenant ON {table} USING ({mine}) WITH CHECK ({mine})")
