"""Alembic migrations: one file a step, explicit operations only."""
