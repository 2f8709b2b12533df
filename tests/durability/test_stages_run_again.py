"""A kill after a stage's commit makes Temporal run the stage again: it must find what it left and tell nothing twice."""

from __future__ import annotations

from collections import Counter

import pytest

from schemas.runs import RunEnd
from tests.durability.material import long_text
from tests.world.builders import World
from tests.world.work_off import STAGES

pytestmark = pytest.mark.asyncio(loop_scope="session")
TEXT = long_text("again", 4)


async def test_every_ingest_stage_run_twice_leaves_one_event_of_each_kind(world: World) -> None:
    space = await world.space(world.root)
    receipt = await world.upload(world.root, space, "again.md", TEXT)
    work = await world.claimed(receipt)
    for name in STAGES:
        first = await world.work.stage(name)(work)
        again = await world.work.stage(name)(work)
        if name not in ("embed", "index", "publish", "sweep"):  # these count what there was left to do
            assert again == first, name
    for _ in range(2):
        await world.work.ending.end(work, RunEnd(state="succeeded"))
    events = await world.history(work.document_id)
    kinds = Counter((event.type, event.data.get("stage")) for event in events)
    assert [kind for kind, times in kinds.items() if times > 1] == []
    assert (events[-1].type, kinds["document.parsed", None]) == ("document.ready", 1)
    assert [event.type for event in await world.events(work.run_id)].count("run.succeeded") == 1


async def test_a_vector_that_left_the_cache_after_the_embed_stage_is_made_again(world: World) -> None:
    """A removal drops the vectors of its texts; another document with those texts may just have counted on them."""
    space = await world.space(world.root)
    work = await world.claimed(await world.upload(world.root, space, "shared.md", TEXT))
    for name in ("fetch", "parse", "chunk", "embed"):
        await world.work.stage(name)(work)
    await world.empty("embeddings_cache")
    await world.work.stage("index")(work)
    chunks = {row["chunk_id"] for row in await world.chunks(work.document_id, work.version)}
    assert await world.points(work.document_id) == (chunks, chunks)
