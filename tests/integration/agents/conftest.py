"""An agency for each test, and a model server beside it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.fakes.openai_server import OpenAIServer
from tests.integration.agents.agency import Agency, build_agency
from tests.world.builders import World


@pytest_asyncio.fixture(loop_scope="session")
async def agency(world: World) -> AsyncIterator[Agency]:
    async with OpenAIServer() as server:
        yield build_agency(world, server)
