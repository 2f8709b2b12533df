from __future__ import annotations
import pytest
from tests.builders import World
pytestmark = pytest.mark.asyncio(loop_scope="session")
async def test_one(world: World) -> None:
    space = await world.space(world.root)
    doc = await world.ingest(world.root, space, "a.md", "# Leave\n\nEverybody has 30 days of leave.\n")
    assert doc.state == "ready", doc
    print(await world.search(world.root, "days of leave"))
    print(await world.ask(world.root, "How many days of leave does everybody have?"))
    print(len(await world.everything_stored()))
async def test_two(world: World) -> None:
    space = await world.space(world.root)
    doc = await world.ingest(world.root, space, "a.md", "# Leave\n\nEverybody has 30 days of leave.\n")
    assert doc.state == "ready", doc
