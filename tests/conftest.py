"""Engines that many levels of tests share: one embedded Postgres per test process, one fresh database per test."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

from infra.local_stack import DataDir, LocalStack
from infra.migrate import migrate
from schemas.settings import Settings
from services.stores.database import Database

_ELSEWHERE = {"temporal_address": "127.0.0.1:1", "kafka_bootstrap": "127.0.0.1:1"}
_TEMPLATE = "perdure_template"


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """An embedded Postgres with a migrated template database; `database` clones it."""
    folder = Path(tempfile.mkdtemp(prefix="perdure-tests-"))
    with asyncio.Runner() as runner:
        data_dir = DataDir(folder)
        data_dir.hold(datetime.now(UTC))
        stack = LocalStack(Settings(**_ELSEWHERE), data_dir)
        addresses = runner.run(stack.start())
        try:
            _trade_safety_for_speed(addresses.database_url)
            with psycopg.connect(_plain(addresses.database_url), autocommit=True) as connection:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(_TEMPLATE)))
            migrate(_named(addresses.database_url, _TEMPLATE))
            yield addresses.database_url
        finally:
            runner.run(stack.stop())
            data_dir.release()
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def database_url(postgres_url: str) -> Iterator[str]:
    """A fresh, migrated database of this test alone."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(_plain(postgres_url), autocommit=True) as connection:
        create = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        connection.execute(create.format(sql.Identifier(name), sql.Identifier(_TEMPLATE)))
        yield _named(postgres_url, name)
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    database = Database(database_url)
    yield database
    await database.close()


def pytest_configure() -> None:
    """Whatever the caller's shell has set must not steer the tests."""
    for name in [name for name in os.environ if name.startswith("PERDURE_") and not name.startswith("PERDURE_TEST_")]:
        if name != "PERDURE_PEERS_CACHE":
            del os.environ[name]


def _trade_safety_for_speed(url: str) -> None:
    """No test of these pulls the plug on this Postgres: what survives a kill is proved by tests/durability.

    Autovacuum runs as the superuser, whom nobody else can send away from a database that is to be dropped.
    """
    as_superuser = make_url(url).set(username="postgres", database="postgres", drivername="postgresql")
    with psycopg.connect(as_superuser.render_as_string(hide_password=False), autocommit=True) as connection:
        for setting in ("fsync", "full_page_writes", "synchronous_commit", "autovacuum"):
            connection.execute(sql.SQL("ALTER SYSTEM SET {} = off").format(sql.Identifier(setting)))
        connection.execute("SELECT pg_reload_conf()")


def _named(url: str, name: str) -> str:
    return make_url(url).set(database=name).render_as_string(hide_password=False)


def _plain(url: str) -> str:
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
