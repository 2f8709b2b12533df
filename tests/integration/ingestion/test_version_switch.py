"""While a newer version is read in, a search sees the old one or the new one: never both, never neither."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import permutations

import pytest

from schemas.runs import RunEnd
from services.ingestion.publish_stage import NewerVersionLive
from services.ingestion.version_work import VersionWork
from services.stores.database import Row
from tests.world.builders import World
from tests.world.work_off import STAGES

pytestmark = pytest.mark.asyncio(loop_scope="session")
OLD = "# Travel\n\nThe limit for a hotel night is 100 euro.\n\n## Food\n\nLunch is paid in full."
NEW = "# Travel\n\nThe limit for a hotel night is 250 euro.\n\n## Food\n\nLunch is paid in full."
QUESTION = "limit for a hotel night"
SUCCEEDED = RunEnd(state="succeeded")


async def seen(world: World) -> str:
    """`100`, `250`, or what went wrong."""
    found = " ".join(await world.found(world.root, QUESTION))
    limits = [limit for limit in ("100", "250") if f"{limit} euro" in found]
    return limits[0] if len(limits) == 1 else f"{limits} in {found!r}"


async def test_between_any_two_stages_a_search_sees_one_version(world: World) -> None:
    space = await world.space(world.root)
    document = await world.ingest(world.root, space, "travel.md", OLD)
    work = await world.claimed(await world.upload(world.root, space, "travel.md", NEW))
    shown = {"received": await seen(world)}
    for stage in STAGES:
        await world.work.stage(stage)(work)
        shown[stage] = await seen(world)
    published = STAGES.index("publish")
    assert shown == {
        "received": "100",
        **dict.fromkeys(STAGES[:published], "100"),
        **dict.fromkeys(STAGES[published:], "250"),
    }
    assert (await world.document(world.root, document.id)).live_version == 2


async def test_searches_without_pause_see_one_version_while_many_are_published(world: World) -> None:
    space = await world.space(world.root)
    await world.ingest(world.root, space, "travel.md", OLD)
    looks: list[str] = []
    done = asyncio.Event()

    async def look() -> None:
        while not done.is_set():
            looks.append(await seen(world))

    looking = [asyncio.create_task(look()) for _ in range(3)]
    for text in (NEW, OLD, NEW, OLD, NEW):
        await world.ingest(world.root, space, "travel.md", text)
    done.set()
    await asyncio.gather(*looking)
    assert set(looks) == {"100", "250"}


async def test_a_version_published_between_recall_and_verification_is_looked_for_once_more(world: World) -> None:
    space = await world.space(world.root)
    await world.ingest(world.root, space, "travel.md", "The limit for a hotel night is 100 euro.")
    receipt = await world.upload(world.root, space, "travel.md", "The limit for a hotel night is 250 euro.")
    work = await world.claimed(receipt)
    for stage in STAGES[: STAGES.index("index")]:
        await world.work.stage(stage)(work)

    async def switch() -> None:
        for stage in ("index", "publish", "sweep"):
            await world.work.stage(stage)(work)

    world.vectors.after_search = switch
    assert await seen(world) == "250"


@pytest.mark.parametrize("first", [1, 2])
async def test_of_two_versions_in_flight_the_newer_one_stays_whichever_is_published_first(
    world: World, first: int
) -> None:
    space = await world.space(world.root)
    works = {
        n: await world.claimed(await world.upload(world.root, space, "a.md", text)) for n, text in ((1, OLD), (2, NEW))
    }
    for work in works.values():
        for stage in STAGES[: STAGES.index("publish")]:
            await world.work.stage(stage)(work)
    for number in (first, 3 - first):
        work = works[number]
        if number == 1 and first == 2:
            with pytest.raises(NewerVersionLive):
                await world.work.publishing.publish(work)
            await world.work.finish(work, "superseded", SUCCEEDED)
        else:
            for stage in STAGES[STAGES.index("publish") :]:
                await world.work.stage(stage)(work)
            await world.work.finish(work, "done", SUCCEEDED)
        assert await seen(world) == ("250" if number == 2 or first == 2 else "100")
    document_id = works[1].document_id
    ids = {chunk["chunk_id"] for chunk in await world.chunks(document_id, 2)}
    assert await world.points(document_id) == (ids, ids), "nothing of version 1 is left in an index"
    assert await states(world, document_id) == {1: "superseded" if first == 2 else "ready", 2: "ready"}
    assert (await world.document(world.root, document_id)).state == "ready"
    assert await world.count("space_statistics", chunks=len(ids)) == 1


LAST_STEPS = ("index", "publish", "sweep", "finish")
MEETINGS = sorted(set(permutations([1, 2] * len(LAST_STEPS))))
"""Every order in which the last steps of two versions can meet: whose step comes next."""


async def test_however_the_last_steps_of_two_versions_meet_the_indexes_hold_the_newer_one_alone(world: World) -> None:
    space = await world.space(world.root)
    left = {}
    for number, meeting in enumerate(MEETINGS):
        receipts = [await world.upload(world.root, space, f"{number}.md", text) for text in (OLD, NEW)]
        works = [await world.claimed(receipt) for receipt in receipts]
        for work in works:
            for stage in STAGES[: STAGES.index("index")]:
                await world.work.stage(stage)(work)
        steps = {version: last_steps(world, work) for version, work in enumerate(works, 1)}
        for version in meeting:
            await anext(steps[version], None)
        document_id = works[0].document_id
        ids = {chunk["chunk_id"] for chunk in await world.chunks(document_id, 2)}
        if await world.points(document_id) != (ids, ids):
            left[meeting] = await world.points(document_id)
        assert (await world.document(world.root, document_id)).live_version == 2
    assert left == {}


async def last_steps(world: World, work: VersionWork) -> AsyncIterator[None]:
    """What IngestDocument does from the index stage on, one step at a time."""
    await world.work.stage("index")(work)
    yield
    try:
        await world.work.publishing.publish(work)
    except NewerVersionLive:
        yield
        await world.work.publishing.discard(work, drop_chunks=False)
        yield
        await world.work.finish(work, "superseded", SUCCEEDED)
    else:
        yield
        await world.work.publishing.sweep(work)
        yield
        await world.work.finish(work, "done", SUCCEEDED)


async def test_a_newer_version_that_fails_leaves_the_live_one_searchable(world: World) -> None:
    space = await world.space(world.root)
    await world.ingest(world.root, space, "travel.md", OLD)
    document = await world.ingest(world.root, space, "travel.md", b"\x89PNG\r\n\x1a\n not an image")
    assert (document.state, document.live_version, document.searchable) == ("failed", 1, True)
    assert await seen(world) == "100"


async def test_a_cancelled_version_leaves_nothing_behind_and_the_live_one_stays(world: World) -> None:
    space = await world.space(world.root)
    document = await world.ingest(world.root, space, "travel.md", OLD)
    before = await world.points(document.id)
    vectors = await world.count("embeddings_cache")
    receipt = await world.upload(world.root, space, "travel.md", NEW)
    work = await world.claimed(receipt)
    for stage in STAGES[: STAGES.index("publish")]:
        await world.work.stage(stage)(work)
    assert await world.points(document.id) != before
    await world.reception.cancel(world.root.actor, document.id)
    assert await world.work.ingest(work) == "cancelled"
    assert await world.points(document.id) == before
    assert await world.count("version_chunks", version=2) == 0
    assert await world.count("embeddings_cache") == vectors
    assert await states(world, document.id) == {1: "ready", 2: "cancelled"}
    assert await seen(world) == "100"
    await world.reception.retry(world.root.actor, document.id)
    await world.work.everything(world.root.actor.tenant)
    assert await seen(world) == "250"


async def states(world: World, document_id: str) -> dict[int, str]:
    rows: list[Row] = await world.versions(document_id)
    return {row["number"]: row["state"] for row in rows}
