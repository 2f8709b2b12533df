"""Brings a database to the newest schema. Safe to call from several processes at once."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from infra.load_settings import BadSettings
from schemas.errors import EngineDown

_MIGRATIONS = Path(__file__).parent / "migrations"
_LOCK = 0x5045_5244  # "PERD": one migration at a time per database


def migrate(database_url: str) -> None:
    """Runs every migration that is missing, in one transaction, under an advisory lock."""
    engine = create_engine(database_url, poolclass=NullPool, connect_args={"connect_timeout": 5})
    try:
        with engine.begin() as connection:
            _refuse_superuser(connection)
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
            command.upgrade(config(connection), "head")
    except OperationalError as error:
        raise EngineDown("postgres", f"Postgres did not let the migrations run: {error.orig}") from error
    finally:
        engine.dispose()


def _refuse_superuser(connection: Connection) -> None:
    """Row-level security, which keeps tenants apart, does not hold for superusers."""
    exempt = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
    if connection.execute(text(exempt)).scalar():
        raise BadSettings(
            "PERDURE_DATABASE_URL connects as a superuser, whom row-level security does not bind: "
            "use a role without SUPERUSER and BYPASSRLS that owns the database"
        )


def config(connection: Connection) -> Config:
    alembic = Config()
    alembic.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    alembic.attributes["connection"] = connection
    return alembic
