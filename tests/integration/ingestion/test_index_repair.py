"""Indexes are caches: what is wrong in them is never shown, and is put right (invariant 1)."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import pytest

from schemas.documents import DocumentView
from schemas.index_records import IndexedChunk
from services.retrieval.index_tokens import chunk_tokens
from tests.world.builders import TENANT, Person, World

pytestmark = pytest.mark.asyncio(loop_scope="session")
TEXT = "# Vault\n\nThe vault code is kept by Karin.\n\n## Keys\n\nSpare keys hang in the workshop."
QUERY = "who keeps the vault code"


async def plant(world: World, *points: IndexedChunk) -> None:
    await world.vectors.upsert(points)
    await world.keywords.upsert(points)


async def point(world: World, space: str, text: str, **fields: Any) -> IndexedChunk:
    """A point that claims to be readable by everyone in the space, whatever Postgres knows of it."""
    vector = (await world.model.embed_passages([text]))[0].tolist()
    tokens = chunk_tokens("", [], "", text)
    made = IndexedChunk(
        id=str(uuid.uuid4()),
        tenant=TENANT,
        space=space,
        document=str(uuid.uuid4()),
        access_version=1,
        readers=[f"space:{space}", f"manager:{space}"],
        media_type="text/markdown",
        source="upload",
        model=world.model.name,
        vector=vector,
        title_tokens=tokens.title,
        body_tokens=tokens.body,
        exact_tokens=tokens.exact,
    )
    return replace(made, **fields)


async def points_of(world: World, document: DocumentView, version: int, **fields: Any) -> list[IndexedChunk]:
    """The version's chunks as points, with payload fields of the test's choice."""
    return [
        await point(world, document.space_id, row["text"], **{"id": row["chunk_id"], "document": document.id, **fields})
        for row in await world.chunks(document.id, version)
    ]


async def assert_never_shown(world: World, who: Person, words: str, query: str = QUERY) -> None:
    """Neither search in any form, nor an answer, nor a count of a leg gives a sign of it."""
    for fields in ({}, {"explain": True}, {"sources": ["upload"]}, {"media_types": ["text/markdown"]}):
        result = await world.search(who, query, **fields)
        assert words not in result.model_dump_json()
        assert sum(leg.hits for leg in result.legs) == len(result.hits) == 0
    answer = await world.ask(who, query)
    assert (answer.answered, answer.citations) == (False, [])
    assert words not in (answer.answer or "")


async def test_chunks_of_a_deleted_document_put_back_by_hand_are_never_shown_and_go(world: World) -> None:
    space = await world.space(world.root)
    document = await world.ingest(world.root, space, "vault.md", TEXT)
    stale = await points_of(world, document, 1)
    await world.remove(world.root, document.id)
    await plant(world, *stale)
    await assert_never_shown(world, world.root, "Karin")
    await world.repair.run()
    assert await world.points(document.id) == (set(), set())


async def test_chunks_of_a_document_that_never_was_are_never_shown_and_go(world: World) -> None:
    space = await world.space(world.root)
    unknown = await point(world, space, "The vault code is kept by Karin.")
    await plant(world, unknown)
    await assert_never_shown(world, world.root, "Karin")
    await world.repair.run()
    assert await world.points(unknown.document) == (set(), set())


async def test_chunks_of_an_older_version_put_back_by_hand_are_never_shown_and_go(world: World) -> None:
    space = await world.space(world.root)
    document = await world.ingest(world.root, space, "vault.md", TEXT)
    stale = await points_of(world, document, 1)
    await world.ingest(world.root, space, "vault.md", "# Canteen\n\nLunch is served at noon.")
    await plant(world, *stale)
    assert not any("Karin" in text for text in await world.found(world.root, QUERY))
    answer = await world.ask(world.root, QUERY)
    assert "Karin" not in (answer.answer or "")
    await world.repair.run()
    ids = {chunk["chunk_id"] for chunk in await world.chunks(document.id, 2)}
    assert await world.points(document.id) == (ids, ids)


async def test_chunks_of_a_version_that_failed_are_never_shown_and_go(world: World) -> None:
    space = await world.space(world.root)
    document = await world.ingest(world.root, space, "vault.md", b"\x7fELF" + bytes(100))
    await plant(world, await point(world, space, "The vault code is kept by Karin.", document=document.id))
    await assert_never_shown(world, world.root, "Karin")
    await world.repair.run()
    assert await world.points(document.id) == (set(), set())


async def test_another_tenants_chunk_under_our_tenants_name_is_never_shown_and_goes(world: World) -> None:
    space = await world.space(world.root)
    stranger = await world.person("admin", tenant="globex")
    theirs = await world.space(stranger)
    document = await world.ingest(stranger, theirs, "vault.md", TEXT)
    (row, *_) = await world.chunks(document.id, 1, tenant="globex")
    fake = await point(world, space, row["text"], id=row["chunk_id"], document=document.id)
    await plant(world, fake)
    await assert_never_shown(world, world.root, "Karin")
    await world.repair.run()
    assert await world.points(document.id) == (set(), set())
    ids = {chunk["chunk_id"] for chunk in await world.chunks(document.id, 1, tenant="globex")}
    assert await world.points(document.id, tenant="globex") == (ids, ids)
    assert len(await world.found(stranger, QUERY)) == len(ids)


async def test_a_payload_that_claims_everyone_may_read_shows_a_forbidden_document_to_nobody(world: World) -> None:
    reader = await world.person()
    space = await world.space(world.root, viewers=[reader])
    document = await world.ingest(world.root, space, "vault.md", TEXT, readers=[])
    await plant(world, *await points_of(world, document, 1, access_version=7))
    await assert_never_shown(world, reader, "Karin")
    assert any("Karin" in text for text in await world.found(world.root, QUERY))


async def test_an_older_access_version_in_an_index_is_brought_up_to_date(world: World) -> None:
    reader = await world.person()
    space = await world.space(world.root, viewers=[reader])
    document = await world.ingest(world.root, space, "vault.md", TEXT, readers=[])
    await world.reception.set_readers(world.root.actor, document.id, ["space"])  # and RefreshAccess has not run
    assert await world.found(reader, QUERY) == []
    await world.repair.run()
    assert any("Karin" in text for text in await world.found(reader, QUERY))
    for index in (world.vectors, world.keywords):
        assert (await index.document_state(TENANT, document.id)).access_versions == (2,)


async def test_points_that_an_index_lost_are_written_again_from_the_cache_and_without_it(world: World) -> None:
    space = await world.space(world.root)
    document = await world.ingest(world.root, space, "vault.md", TEXT)
    ids = {chunk["chunk_id"] for chunk in await world.chunks(document.id, 1)}
    world.model.asked.clear()
    await world.vectors.delete_document(TENANT, document.id)
    await world.keywords.delete_ids(TENANT, [sorted(ids)[0]])
    await world.repair.run()
    assert await world.points(document.id) == (ids, ids)
    assert world.model.asked == []
    await world.vectors.clear()
    await world.empty("embeddings_cache")
    await world.repair.run()
    assert await world.points(document.id) == (ids, ids)
    assert len(world.model.asked) == len(ids)


async def test_repair_leaves_what_is_right_as_it_is(world: World) -> None:
    space = await world.space(world.root)
    document = await world.ingest(world.root, space, "vault.md", TEXT)
    before = [await index.document_state(TENANT, document.id) for index in (world.vectors, world.keywords)]
    await world.repair.run()
    assert [await index.document_state(TENANT, document.id) for index in (world.vectors, world.keywords)] == before


async def test_a_rebuild_from_nothing_gives_both_indexes_as_they_were(world: World) -> None:
    stranger = await world.person("admin", tenant="globex")
    documents = [(TENANT, await world.ingest(world.root, await world.space(world.root), "vault.md", TEXT))]
    theirs = await world.ingest(stranger, await world.space(stranger), "vault.md", TEXT, readers=[])
    documents.append(("globex", theirs))
    await world.ingest(world.root, documents[0][1].space_id, "vault.md", TEXT.replace("Karin", "Johan"))
    gone = await world.ingest(world.root, documents[0][1].space_id, "gone.md", TEXT)
    await world.remove(world.root, gone.id)
    indexes = (world.vectors, world.keywords)
    before = [await index.document_state(tenant, each.id) for index in indexes for tenant, each in documents]
    found = await world.found(world.root, QUERY)
    assert await world.repair.rebuild() == 2
    assert [await index.document_state(tenant, each.id) for index in indexes for tenant, each in documents] == before
    assert await world.found(world.root, QUERY) == found
    assert await world.points(gone.id) == (set(), set())
