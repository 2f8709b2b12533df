"""A document that comes again: what is made anew, what is shared, what goes."""

from __future__ import annotations

import asyncio

import pytest

from schemas.errors import Conflict
from tests.world.builders import World

pytestmark = pytest.mark.asyncio(loop_scope="session")


def sections(count: int) -> str:
    """One chunk a section; every section says something of its own."""
    parts = [f"## Part {n}\n\nMachine {n} is serviced every {n + 3} weeks by team {n % 7}.\n" for n in range(count)]
    return "# Service plan\n\n" + "\n".join(parts)


async def test_one_changed_line_among_five_hundred_chunks_makes_one_embedding(world: World) -> None:
    space = await world.space(world.root)
    first = sections(500)
    document = await world.ingest(world.root, space, "plan.md", first)
    assert len(await world.chunks(document.id, 1)) >= 500
    made = await world.count("embeddings_cache")
    world.model.asked.clear()
    second = first.replace("Machine 250 is serviced every 253 weeks", "Machine 250 is serviced every 11 weeks")
    assert second != first
    document = await world.ingest(world.root, space, "plan.md", second)
    assert (document.state, document.live_version) == ("ready", 2)
    assert 1 <= len(world.model.asked) <= 3
    assert await world.count("embeddings_cache") - made == len(world.model.asked)
    ids = {chunk["chunk_id"] for chunk in await world.chunks(document.id, 2)}
    assert await world.points(document.id) == (ids, ids)
    assert await world.count("space_statistics", chunks=len(ids)) == 1
    published = [event for event in await world.history(document.id) if event.type == "document.published"]
    assert published[-1].data["embeddings_made"] == len(world.model.asked)


async def test_the_same_bytes_again_are_unchanged_and_bring_their_readers_and_tags(world: World) -> None:
    space = await world.space(world.root)
    document = await world.ingest(world.root, space, "a.md", "# Leave\n\nThirty days.", tags=["old"])
    again = await world.upload(
        world.root, space, "a.md", "# Leave\n\nThirty days.", tags=["new"], readers=[], title="Leave 2026"
    )
    assert (again.outcome, again.version, again.run_id) == ("unchanged", 1, None)
    await world.work.everything(world.root.actor.tenant)
    view = await world.document(world.root, document.id)
    assert (view.version, view.tags, view.readers, view.title, view.state) == (1, ["new"], [], "Leave 2026", "ready")


async def test_a_title_that_comes_with_the_same_bytes_is_found_by_its_words(world: World) -> None:
    space = await world.space(world.root)
    document = await world.ingest(world.root, space, "a.md", "Thirty days are granted.", title="Leave")
    again = await world.upload(world.root, space, "a.md", "Thirty days are granted.", title="Sabbatical")
    assert again.outcome == "unchanged"
    await world.work.everything(world.root.actor.tenant)
    legs = {leg.name: leg.hits for leg in (await world.search(world.root, "sabbatical")).legs}
    assert legs["keyword"] == len(await world.chunks(document.id, 1)) == 1


async def test_new_bytes_without_readers_and_tags_keep_those_that_are_there(world: World) -> None:
    space = await world.space(world.root)
    owner = f"user:{world.root.id}"
    await world.ingest(world.root, space, "a.md", "First words.", tags=["kept"], readers=[owner])
    document = await world.ingest(world.root, space, "a.md", "Second words.")
    assert (document.live_version, document.tags, document.readers) == (2, ["kept"], [owner])


async def test_the_same_bytes_after_a_failure_are_a_new_version(world: World) -> None:
    space = await world.space(world.root)
    failed = await world.ingest(world.root, space, "a.md", b"   \n \n")
    assert failed.state == "failed"
    again = await world.upload(world.root, space, "a.md", b"   \n \n")
    assert (again.outcome, again.version) == ("updated", 2)


async def test_the_same_bytes_under_another_name_share_embeddings_and_name_their_twin_to_who_may_read_it(
    world: World,
) -> None:
    ann, ben = await world.person(), await world.person()
    space = await world.space(world.root, contributors=[ann, ben])
    text = "# Leave\n\nEverybody has thirty days."
    first = await world.ingest(ann, space, "first.md", text, readers=[f"user:{ann.id}"])
    world.model.asked.clear()
    hidden = await world.upload(ben, space, "second.md", text, title=first.title)
    assert (hidden.outcome, hidden.duplicate_of) == ("created", None)
    shown = await world.upload(ann, space, "third.md", text, title=first.title)
    assert shown.duplicate_of == first.id
    await world.work.everything(ann.actor.tenant)
    assert world.model.asked == []
    assert hidden.document_id is not None
    await world.remove(ben, hidden.document_id)
    assert {hit.document_id for hit in (await world.search(ann, "days of leave")).hits} == {first.id, shown.document_id}


async def test_a_name_of_somebody_elses_hidden_document_is_taken_and_nothing_more_is_said(world: World) -> None:
    ann, ben = await world.person(), await world.person()
    space = await world.space(world.root, contributors=[ann, ben])
    await world.ingest(ann, space, "secret.md", "Merger with Acme.", title="Merger", readers=[f"user:{ann.id}"])
    with pytest.raises(Conflict) as refused:
        await world.upload(ben, space, "secret.md", "Anything.")
    assert refused.value.type == "name_taken"
    assert "Merger" not in f"{refused.value.detail}{refused.value.extra}"


async def test_a_shorter_version_leaves_no_tail_in_either_index(world: World) -> None:
    space = await world.space(world.root)
    document = await world.ingest(world.root, space, "plan.md", sections(12))
    await world.ingest(world.root, space, "plan.md", sections(3))
    ids = {chunk["chunk_id"] for chunk in await world.chunks(document.id, 2)}
    assert len(ids) <= 4
    assert await world.points(document.id) == (ids, ids)
    assert not any("Machine 11" in text for text in await world.found(world.root, "Machine 11 serviced by team 4"))
    assert (await world.upload(world.root, space, "plan.md", sections(3))).outcome == "unchanged"


async def test_twenty_uploads_of_one_file_at_once_are_one_version(world: World) -> None:
    space = await world.space(world.root)
    receipts = await asyncio.gather(*(world.upload(world.root, space, "a.md", "One and only.") for _ in range(20)))
    assert sorted(receipt.outcome for receipt in receipts) == ["created"] + ["unchanged"] * 19
    assert len({receipt.document_id for receipt in receipts}) == 1
    await world.work.everything(world.root.actor.tenant)
    assert await world.count("document_versions") == 1
    assert len(world.model.asked) == 1
    assert len(await world.found(world.root, "one and only")) == 1


async def test_twenty_different_versions_at_once_are_numbered_without_gap_and_the_last_one_is_live(
    world: World,
) -> None:
    space = await world.space(world.root)
    receipts = await asyncio.gather(*(world.upload(world.root, space, "a.md", f"Take {n}.") for n in range(20)))
    assert sorted(receipt.version or 0 for receipt in receipts) == list(range(1, 21))
    await world.work.everything(world.root.actor.tenant)
    last = next(n for n, receipt in enumerate(receipts) if receipt.version == 20)
    assert await world.found(world.root, "take") == [f"Take {last}."]
    (document_id,) = {receipt.document_id for receipt in receipts}
    assert document_id is not None
    ids = {chunk["chunk_id"] for chunk in await world.chunks(document_id, 20)}
    assert await world.points(document_id) == (ids, ids)
