"""One running API per test, with an admin and a member of the tenant `acme`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fastapi import FastAPI

from services.container import Serving
from services.stores.database import Database
from tests.integration.api import serving
from tests.integration.api.serving import Person


@pytest.fixture
def container(database: Database, tmp_path: Path) -> Serving:
    return serving.serving(database, tmp_path / "blobs")


@pytest.fixture
async def app(container: Serving) -> AsyncIterator[FastAPI]:
    async with serving.running(container) as running:
        yield running


@pytest.fixture
async def admin(database: Database, app: FastAPI) -> Person:
    return await serving.person(database, app, role="admin")


@pytest.fixture
async def member(database: Database, app: FastAPI, admin: Person) -> Person:
    return await serving.person(database, app)


@pytest.fixture
async def stranger(database: Database, app: FastAPI) -> Person:
    """The admin of another tenant."""
    return await serving.person(database, app, tenant="globex", role="admin")
