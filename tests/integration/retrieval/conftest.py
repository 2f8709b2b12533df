"""A world that tests only search in: made once."""

from __future__ import annotations

from collections.abc import AsyncIterator

import psycopg
import pytest
import pytest_asyncio
from sqlalchemy import make_url

from infra.migrate import migrate
from tests.integration.retrieval.scripts import TEXTS
from tests.world.builders import World
from tests.world.embedding_edge import RememberedEmbedding
from tests.world.fixtures import Children, opened_world


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def session_world(
    postgres_url: str,
    tmp_path_factory: pytest.TempPathFactory,
    embedding: RememberedEmbedding,
    children: Children,
) -> AsyncIterator[World]:
    url = make_url(postgres_url)
    plain = url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute("CREATE DATABASE searched")
    migrated = url.set(database="searched").render_as_string(hide_password=False)
    migrate(migrated)
    async with opened_world(migrated, tmp_path_factory.mktemp("world"), embedding, children) as world:
        space = await world.space(world.root)
        for number, text in enumerate(TEXTS):
            await world.upload(world.root, space, f"{number}.txt", text)
        await world.work.everything(world.root.actor.tenant)
        yield world
