"""What every index does, vectors and keywords alike: scope, deletion, readers, and telling what it holds."""

from __future__ import annotations

import asyncio
import random
import uuid

import pytest

from schemas.index_records import IndexedDocument, document_digest
from tests.integration.stores.indexes.chunks import chunk, chunk_id, scope
from tests.integration.stores.indexes.finding import AnyIndex, find


async def walk(index: AnyIndex, limit: int) -> set[IndexedDocument]:
    documents: set[IndexedDocument] = set()
    page = await index.list_documents(None, limit)
    documents.update(page.documents)
    while page.after is not None:
        page = await index.list_documents(page.after, limit)
        documents.update(page.documents)
    return documents


async def test_an_empty_index_answers_every_question_with_nothing(any_index: AnyIndex) -> None:
    await any_index.ping()
    await any_index.upsert([])
    await any_index.set_readers("a", "d", ["user:u"], 2)
    await any_index.set_version("a", "d", "text/plain", 7)
    assert await find(any_index, scope()) == set()
    assert await any_index.count_document("a", "d") == 0
    assert await any_index.document_ids("a", "d") == set()
    assert await any_index.delete_document("a", "d") == 0
    assert await any_index.delete_ids("a", [chunk_id("1")]) == 0
    assert await any_index.delete_ids("a", []) == 0
    assert await walk(any_index, 10) == set()


async def test_a_tenant_never_finds_counts_or_removes_what_is_anothers(any_index: AnyIndex) -> None:
    await any_index.upsert([chunk("mine"), chunk("theirs", tenant="b")])
    assert await find(any_index, scope("a")) == {chunk_id("mine")}
    assert await find(any_index, scope("b")) == {chunk_id("theirs")}
    assert await any_index.delete_ids("a", [chunk_id("theirs")]) == 0
    await any_index.set_readers("a", "d", ["user:nobody"], 2)
    assert await any_index.delete_document("a", "d") == 1
    assert await find(any_index, scope("b")) == {chunk_id("theirs")}
    assert await any_index.document_ids("b", "d") == {chunk_id("theirs")}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, {"1", "2", "3"}),
        ({"spaces": ["s"]}, {"1", "2"}),
        ({"spaces": []}, set()),
        ({"readers": []}, set()),
        ({"readers": ["user:u"]}, {"2"}),
        ({"readers": ["user:nobody"]}, set()),
        ({"readers": ["user:nobody", "user:u"]}, {"2"}),
        ({"documents": ["d1", "d3"]}, {"1", "3"}),
        ({"documents": ["d1"], "tags": ["red"]}, {"1"}),
        ({"documents": ["d1"], "tags": ["blue"]}, set()),
        ({"tags": ["red", "blue"]}, {"1", "2"}),
        ({"sources": ["mail"]}, {"3"}),
        ({"media_types": ["text/plain", "text/html"]}, {"1", "2", "3"}),
        ({"media_types": ["text/html"]}, {"3"}),
        ({"updated_after": 20}, {"2", "3"}),
        ({"updated_before": 20}, {"1"}),
        ({"updated_after": 20, "updated_before": 30}, {"2"}),
        ({"documents": ['d1" OR "d2', "*"]}, set()),
    ],
)
async def test_fields_of_a_filter_join_by_and_and_values_inside_a_field_by_or(
    any_index: AnyIndex, asked: dict[str, object], expected: set[str]
) -> None:
    await any_index.upsert(
        [
            chunk("1", document="d1", tags=["red", "big"], updated_at=10),
            chunk("2", document="d2", tags=["blue"], updated_at=20, readers=["space:s", "user:u"]),
            chunk(
                "3", document="d3", space="t", readers=["space:t"], source="mail", media_type="text/html", updated_at=30
            ),
        ]
    )
    everywhere = {"spaces": ["s", "t"], "readers": ["space:s", "space:t"]}
    assert await find(any_index, scope(**{**everywhere, **asked})) == {chunk_id(name) for name in expected}  # type: ignore[arg-type]


async def test_a_chunk_written_again_replaces_itself(any_index: AnyIndex) -> None:
    await any_index.upsert([chunk("1", readers=["user:old"])])
    await any_index.upsert([chunk("1", readers=["user:new"], access_version=2)])
    assert await find(any_index, scope(readers=["user:old"])) == set()
    assert await find(any_index, scope(readers=["user:new"])) == {chunk_id("1")}
    assert await any_index.count_document("a", "d") == 1


async def test_deleting_tells_how_many_there_were_and_the_next_search_finds_none(any_index: AnyIndex) -> None:
    await any_index.upsert([chunk(str(number)) for number in range(12)] + [chunk("other", document="e")])
    assert await any_index.delete_ids("a", [chunk_id("0"), chunk_id("1"), chunk_id("unknown")]) == 2
    assert await any_index.count_document("a", "d") == 10
    assert await any_index.delete_document("a", "d") == 10
    assert await any_index.delete_document("a", "d") == 0
    assert await any_index.document_ids("a", "d") == set()
    assert await find(any_index, scope()) == {chunk_id("other")}


async def test_a_shorter_version_leaves_no_tail_when_the_old_ids_are_deleted(any_index: AnyIndex) -> None:
    await any_index.upsert([chunk(f"old {number}") for number in range(12)])
    await any_index.upsert([chunk(f"new {number}") for number in range(3)])
    new = {chunk_id(f"new {number}") for number in range(3)}
    stale = await any_index.document_ids("a", "d") - new
    assert await any_index.delete_ids("a", sorted(stale)) == 12
    assert await find(any_index, scope()) == new


async def test_changed_readers_hold_at_once_and_are_never_undone_by_an_older_change(any_index: AnyIndex) -> None:
    await any_index.upsert([chunk(str(number)) for number in range(3)] + [chunk("other", document="e")])
    await any_index.set_readers("a", "d", ["user:u", "group:g"], 3)
    ids = {chunk_id(str(number)) for number in range(3)}
    assert await find(any_index, scope(readers=["space:s"])) == {chunk_id("other")}
    assert await find(any_index, scope(readers=["group:g"])) == ids
    await any_index.set_readers("a", "d", ["space:s"], 2)
    assert await find(any_index, scope(readers=["space:s"])) == {chunk_id("other")}
    state = await any_index.document_state("a", "d")
    assert state.ids == tuple(sorted(ids))
    assert state.access_versions == (3,)


async def test_a_document_without_readers_is_found_by_nobody(any_index: AnyIndex) -> None:
    await any_index.upsert([chunk("1", readers=[])])
    assert await find(any_index, scope(readers=["space:s", "user:u"])) == set()
    assert await any_index.count_document("a", "d") == 1


async def test_changed_readers_leave_all_else_as_it_was(any_index: AnyIndex) -> None:
    await any_index.upsert([chunk("1", tags=["red"], source="mail", media_type="text/html", updated_at=7)])
    await any_index.set_readers("a", "d", ["user:u"], 2)
    same = scope(
        readers=["user:u"], documents=["d"], tags=["red"], sources=["mail"], media_types=["text/html"],
        updated_after=7, updated_before=8,
    )  # fmt: skip
    assert await find(any_index, same) == {chunk_id("1")}


async def test_a_new_version_changes_type_and_time_of_all_chunks_of_its_document_and_nothing_else(
    any_index: AnyIndex,
) -> None:
    mine = [
        chunk(str(number), tags=["red"], source="mail", media_type="text/html", updated_at=7) for number in range(3)
    ]
    other = chunk("other", document="e", media_type="text/html", updated_at=7)
    await any_index.upsert([*mine, other])
    await any_index.set_version("a", "d", "text/markdown", 90)
    as_before = scope(tags=["red"], sources=["mail"], updated_after=90, updated_before=91)
    assert await find(any_index, as_before) == {one.id for one in mine}
    assert await find(any_index, scope(media_types=["text/markdown"])) == {one.id for one in mine}
    assert await find(any_index, scope(media_types=["text/html"], updated_before=8)) == {other.id}
    assert (await any_index.document_state("a", "d")).access_versions == (1,)


async def test_the_digest_of_a_document_tells_a_missing_chunk_and_a_late_access_version(any_index: AnyIndex) -> None:
    await any_index.upsert([chunk("1", access_version=4), chunk("2", access_version=4)])
    ids = [chunk_id("1"), chunk_id("2")]
    state = await any_index.document_state("a", "d")
    assert state.digest == document_digest(ids, [4])
    assert state.digest != document_digest(ids, [5])
    assert state.digest != document_digest(ids[:1], [4])
    await any_index.upsert([chunk("2", access_version=5)])
    assert (await any_index.document_state("a", "d")).access_versions == (4, 5)


async def test_a_long_document_is_counted_and_listed_whole(any_index: AnyIndex) -> None:
    chunks = [chunk(f"long {number}") for number in range(2_345)]
    await any_index.upsert(chunks)
    assert await any_index.count_document("a", "d") == 2_345
    assert await any_index.document_ids("a", "d") == {one.id for one in chunks}
    await any_index.set_readers("a", "d", ["user:u"], 2)
    assert (await any_index.document_state("a", "d")).access_versions == (2,)
    assert await any_index.delete_document("a", "d") == 2_345


@pytest.mark.parametrize("limit", [1, 4, 1_000])
async def test_a_walk_over_the_documents_meets_every_one_of_every_tenant(any_index: AnyIndex, limit: int) -> None:
    expected = {IndexedDocument(tenant, f"d{number}") for tenant in "ab" for number in range(5)}
    chunks = [
        chunk(f"{one.tenant} {one.document} {number}", tenant=one.tenant, document=one.document)
        for one in expected
        for number in range(3)
    ]
    await any_index.upsert(chunks)
    assert await walk(any_index, limit) == expected
    await any_index.delete_document("b", "d3")
    assert await walk(any_index, limit) == expected - {IndexedDocument("b", "d3")}


async def test_cleared_means_empty_and_ready_for_use(any_index: AnyIndex) -> None:
    await any_index.upsert([chunk("1")])
    await any_index.clear()
    assert await find(any_index, scope()) == set()
    assert await walk(any_index, 10) == set()
    await any_index.upsert([chunk("2")])
    assert await find(any_index, scope()) == {chunk_id("2")}


async def test_documents_written_side_by_side_are_each_visible_to_their_own_writer(any_index: AnyIndex) -> None:
    async def write_and_look(number: int) -> None:
        document = f"d{number}"
        await any_index.upsert([chunk(f"{number} {part}", document=document) for part in range(5)])
        assert await any_index.count_document("a", document) == 5
        await any_index.set_readers("a", document, [f"user:{number}"], 2)
        assert len(await find(any_index, scope(readers=[f"user:{number}"]))) == 5
        if number % 2:
            assert await any_index.delete_document("a", document) == 5
            assert await any_index.count_document("a", document) == 0

    await asyncio.gather(*(write_and_look(number) for number in range(20)))
    assert len(await walk(any_index, 1_000)) == 10


async def test_random_writes_and_removals_leave_what_a_plain_dictionary_would_hold(any_index: AnyIndex) -> None:
    chance = random.Random(7)
    held: dict[str, tuple[str, str]] = {}
    for step in range(30):
        tenant, document = chance.choice("ab"), f"d{chance.randrange(4)}"
        match chance.randrange(3):
            case 0:
                chunks = [
                    chunk(f"{step} {part}", tenant=tenant, document=document) for part in range(chance.randrange(1, 4))
                ]
                await any_index.upsert(chunks)
                held.update({one.id: (tenant, document) for one in chunks})
            case 1:
                mine = [one for one, owner in held.items() if owner == (tenant, document)]
                assert await any_index.delete_document(tenant, document) == len(mine)
                for one in mine:
                    del held[one]
            case _:
                picked = [*chance.sample(sorted(held), min(2, len(held))), str(uuid.UUID(int=step))]
                mine = [one for one in picked if held.get(one, ("", ""))[0] == tenant]
                assert await any_index.delete_ids(tenant, picked) == len(mine)
                for one in mine:
                    del held[one]
    for tenant in "ab":
        expected = {one for one, owner in held.items() if owner[0] == tenant}
        assert await find(any_index, scope(tenant)) == expected
