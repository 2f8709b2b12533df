"""Alembic's environment. `infra/migrate.py` hands over the connection; there is no ini file."""

from __future__ import annotations

from alembic import context

from services.stores.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, compare_type=False)
with context.begin_transaction():
    context.run_migrations()
