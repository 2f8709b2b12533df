"""The tenant lint: it holds for the product, and it sees each way around the tenant."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from services.stores import tables
from services.stores.tables.base import metadata
from tests.architecture.repository import ROOT, place, python_files
from tests.architecture.tenant_scope import BLESSED, CHECKED_PACKAGES, bypasses

TENANT_FREE = {"tenants", "consumers"}
"""The list of tenants itself, and which topics our own processes read: rows of no tenant."""


def test_the_product_reaches_postgres_through_the_tenant_alone() -> None:
    found = [
        f"{place(path)}:{bypass.line} {bypass.detail}"
        for path in python_files(*CHECKED_PACKAGES)
        if path != ROOT / BLESSED
        for bypass in bypasses(path.read_text(encoding="utf-8"))
    ]
    assert not found


def test_the_blessed_module_exists_and_is_the_one_that_opens_connections() -> None:
    details = {bypass.detail for bypass in bypasses((ROOT / BLESSED).read_text(encoding="utf-8"))}
    assert "imports create_async_engine" in details


def test_every_table_has_a_tenant_column() -> None:
    for module in pkgutil.iter_modules(tables.__path__, f"{tables.__name__}."):
        importlib.import_module(module.name)
    bare = {table.name for table in metadata.sorted_tables if "tenant" not in table.columns}
    assert bare <= TENANT_FREE
    assert len(metadata.sorted_tables) > 10


@pytest.mark.parametrize(
    ("source", "detail"),
    [
        ("from sqlalchemy.ext.asyncio import create_async_engine", "imports create_async_engine"),
        ("from sqlalchemy.orm import Session", "imports Session"),
        ("import sqlalchemy as sa\nengine = sa.create_engine(url)", "opens connections with create_engine"),
        ("import psycopg", "imports psycopg"),
        ("from psycopg_pool import AsyncConnectionPool", "imports psycopg_pool"),
        ("rows = database._engine.connect()", "takes _engine out of the database"),
        ("await transaction._connection.execute(statement)", "takes _connection out of the database"),
        ("transaction = Transaction(connection, tenant, now)", "makes a Transaction by itself"),
        ("async def act():\n    async with database.every_tenant(''): ...", "calls every_tenant without a written reason"),
        ("async def act():\n    async with database.every_tenant(why): ...", "calls every_tenant without a written reason"),
        ("statement = text('SET LOCAL ROLE postgres')", "changes role or tenant in SQL"),
        ("statement = text(f\"SELECT set_config('perdure.tenant', '{tenant}', true)\")", "changes role or tenant in SQL"),
        ("statement = text('SET row_security = off')", "changes role or tenant in SQL"),
    ],
)  # fmt: skip
def test_the_lint_sees_each_way_around_the_tenant(source: str, detail: str) -> None:
    assert [bypass.detail for bypass in bypasses(source)] == [detail]


@pytest.mark.parametrize(
    "source",
    [
        "from sqlalchemy import select, insert, update, delete, text",
        "async def act():\n    async with database.begin(tenant) as transaction: ...",
        "async def act():\n    async with database.every_tenant('the relay serves all tenants'): ...",
        "import psycopg  # cross-tenant: reads the server's version before any tenant exists",
        "column = text(\"current_setting('perdure.tenant')\")",
        '"""Says what set_config(...) does."""',
        "statement = update(runs).values(role='viewer')",
    ],
)
def test_the_lint_leaves_ordinary_work_alone(source: str) -> None:
    assert bypasses(source) == []


def test_a_skip_word_without_a_reason_does_not_count() -> None:
    assert bypasses("import psycopg  # cross-tenant:")
