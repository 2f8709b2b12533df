"""What is deleted leaves every store, whoever else was at work on it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import insert, select

from schemas.answers import AnswerRequest
from schemas.documents import Receipts
from schemas.domain_events import DomainEvent
from schemas.errors import NotFound, Problem
from services.answers.generating import Draft
from services.answers.retrieving import AnswerWork
from services.stores import embeddings_store, event_log
from services.stores.documents_store import DocumentGone
from services.stores.tables.facts import audit_log, idempotency_keys
from tests.integration.ingestion import made_files
from tests.world.builders import TENANT, World
from tests.world.work_off import STAGES

pytestmark = pytest.mark.asyncio(loop_scope="session")
TEXT = "# Heliotrope\n\nThe quokka budget is kept by Zebediah in Wollongong."
WORDS = ("quokka", "Zebediah", "Wollongong", "Heliotrope", "marmalade-plan")


async def assert_nowhere(world: World, *words: str) -> None:
    """In no table, no blob and no name of a blob."""
    stored = (await world.everything_stored()).lower()
    assert {word: [line[:300] for line in stored.splitlines() if word.lower() in line] for word in words} == {
        word: [] for word in words
    }


async def test_a_removed_document_is_in_no_store_and_its_space_counts_it_no_more(world: World) -> None:
    space = await world.space(world.root)
    kept = await world.ingest(world.root, space, "kept.md", "# Canteen\n\nLunch is served at noon.")
    before = {
        table: await world.count(table)
        for table in ("chunks", "version_chunks", "embeddings_cache", "document_versions")
    }
    statistics = await space_mean(world, space)
    blobs = await world.blob_keys()
    document = await world.ingest(world.root, space, "marmalade-plan.md", TEXT)
    assert await world.blob_keys() != blobs
    await world.remove(world.root, document.id)
    assert {table: await world.count(table) for table in before} == before
    assert await world.points(document.id) == (set(), set())
    assert await world.blob_keys() == blobs
    assert (await space_mean(world, space))[0] == statistics[0]
    assert (await space_mean(world, space))[1] == pytest.approx(statistics[1], abs=1e-5)
    skeleton = {name: value for name, value in (await world.row(document.id)).items() if value is not None}
    assert skeleton.keys() == {"tenant", "id", "space_id", "state", "access_version", "tombstoned_at", "removed_at"}
    assert len(await world.found(world.root, "lunch at noon")) == 1
    assert (await world.document(world.root, kept.id)).state == "ready"


async def test_no_word_of_a_removed_document_is_left_in_any_table_or_blob(world: World) -> None:
    space = await world.space(world.root)
    document = await world.ingest(
        world.root, space, "marmalade-plan.md", TEXT, title="Heliotrope", tags=["quokka"], readers=["space"]
    )
    await world.ingest(world.root, space, "marmalade-plan.md", TEXT + "\n\nZebediah left.")
    await world.ingest(world.root, space, "marmalade-plan.md", b"%PDF-1.7 broken")  # its error may quote the name
    answer = await world.ask(world.root, "Who keeps the budget?")
    assert "Zebediah" in (answer.answer or "")
    async with world.database.begin(TENANT) as transaction:  # what the audit consumer writes of an event
        for event in [*await world.history(document.id), *await run_history(world, document.id)]:
            row = {name: getattr(event, name) for name in ("stream", "stream_version", "type", "actor", "data")}
            await transaction.execute(insert(audit_log).values(**row, at=event.time))
    stored = await world.everything_stored()
    assert all(word in stored for word in WORDS)
    await world.remove(world.root, document.id)
    await assert_nowhere(world, *WORDS)
    view = await world.asking.view(world.root.actor, answer.id)
    assert (view.withheld, view.answer, view.citations) == (True, None, [])


async def test_names_in_errors_and_warnings_go_with_their_document(world: World) -> None:
    space = await world.space(world.root)
    broken = await world.ingest(world.root, space, "marmalade-plan.docx", made_files.docx()[:700])
    mail = await world.ingest(
        world.root, space, "mail.eml", made_files.eml("About Wollongong.", attachment=b"quokka,days\nZebediah,3\n")
    )
    assert broken.state == "failed"
    await world.remove(world.root, broken.id)
    await world.remove(world.root, mail.id)
    await assert_nowhere(world, *WORDS, "days.csv", "We are moving")


async def test_a_stored_reply_to_an_upload_forgets_the_name_of_a_removed_file_alone(world: World) -> None:
    space = await world.space(world.root)
    receipts = [await world.upload(world.root, space, name, TEXT) for name in ("marmalade-plan.md", "other.md")]
    reply = Receipts(documents=receipts).model_dump(mode="json")
    now = datetime.now(UTC)
    row = {"actor": "ada", "key": "k", "body_hash": "h", "status": 202, "response": reply}
    async with world.database.begin(TENANT) as transaction:
        await transaction.execute(insert(idempotency_keys).values(**row, created_at=now, expires_at=now))
    await world.work.everything(TENANT)
    await world.remove(world.root, str(receipts[0].document_id))
    async with world.database.begin(TENANT) as transaction:
        kept = await transaction.scalar(select(idempotency_keys.c.response))
    assert [each["external_id"] for each in kept["documents"]] == ["", "other.md"]
    assert [each["run_id"] for each in kept["documents"]] == [receipt.run_id for receipt in receipts]
    assert "marmalade" not in await world.everything_stored()


async def test_an_answer_written_while_its_document_is_removed_keeps_nothing_of_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = await world.space(world.root)
    document = await world.ingest(world.root, space, "marmalade-plan.md", TEXT, title="Heliotrope")
    started = await world.asking.start(world.root.actor, AnswerRequest(question="Who keeps the budget?"))
    work = AnswerWork(TENANT, started.run_id, started.answer_id)
    await world.work.retrieving.run(work)
    generating = world.work.generating
    draft = generating._draft

    async def removed_after_the_last_look(*arguments: Any) -> Draft:
        assert "Zebediah" in str(arguments)
        await world.reception.remove(world.root.actor, document.id)
        await world.work.run((await world.runs(document.id))[-1])
        return await draft(*arguments)

    monkeypatch.setattr(generating, "_draft", removed_after_the_last_look)
    await world.work.generating.run(work, attempt="1")
    await assert_nowhere(world, *WORDS)


async def test_members_go_with_their_container(world: World) -> None:
    space = await world.space(world.root)
    inner = made_files.archive({"marmalade-plan.md": TEXT.encode()})
    pack = await world.ingest(world.root, space, "pack.zip", made_files.archive({"inner.zip": inner}))
    assert await world.count("documents") == 3
    await world.remove(world.root, pack.id)
    assert await world.found(world.root, "quokka budget") == []
    assert await world.blob_keys() == set()
    for table in ("chunks", "version_chunks", "embeddings_cache", "document_versions"):
        assert await world.count(table) == 0
    await assert_nowhere(world, *WORDS, "inner.zip", "pack.zip")


async def test_a_member_that_arrives_while_its_container_is_deleted_goes_with_it(world: World) -> None:
    space = await world.space(world.root)
    pack = await world.upload(world.root, space, "pack.zip", made_files.archive({"note.md": TEXT.encode()}))
    work = await world.claimed(pack)
    parsing = asyncio.create_task(world.work.parse.run(work))
    assert pack.document_id is not None
    await world.until(lambda: world.count("documents", stage="parsing"))
    await world.reception.remove(world.root.actor, pack.document_id)
    await asyncio.gather(parsing, return_exceptions=True)
    assert await world.work.ingest(work) in ("cancelled", "gone")
    await world.work.everything(TENANT)
    assert await world.count("documents", removed_at=None) == 0
    await assert_nowhere(world, *WORDS)


@pytest.mark.parametrize("after", STAGES)
async def test_deleting_after_any_stage_fences_the_later_ones_and_nothing_is_left(world: World, after: str) -> None:
    space = await world.space(world.root)
    receipt = await world.upload(world.root, space, "marmalade-plan.md", TEXT)
    work = await world.claimed(receipt)
    reached = STAGES.index(after) + 1
    for stage in STAGES[:reached]:
        await world.work.stage(stage)(work)
    assert receipt.document_id is not None
    await world.reception.remove(world.root.actor, receipt.document_id)
    assert await world.found(world.root, "quokka budget") == []
    for stage in STAGES[reached:]:
        with pytest.raises(DocumentGone):
            await world.work.stage(stage)(work)
    await world.work.everything(TENANT)
    assert await world.points(receipt.document_id) == (set(), set())
    assert await world.blob_keys() == set()
    await assert_nowhere(world, *WORDS)
    assert {run["state"] for run in await world.runs(receipt.document_id)} == {"cancelled", "succeeded"}


async def test_deleting_twice_at_once_is_one_removal(world: World) -> None:
    space = await world.space(world.root)
    document = await world.ingest(world.root, space, "a.md", TEXT)
    replies = await asyncio.gather(
        *(world.reception.remove(world.root.actor, document.id) for _ in range(5)), return_exceptions=True
    )
    assert sum(isinstance(reply, str) for reply in replies) == 1
    assert all(isinstance(reply, str | NotFound) for reply in replies), replies
    types = [event.type for event in await world.history(document.id)]
    assert types.count("document.removing") == 1


async def test_a_removed_name_is_free_for_a_new_document(world: World) -> None:
    space = await world.space(world.root)
    first = await world.ingest(world.root, space, "a.md", TEXT)
    await world.reception.remove(world.root.actor, first.id)
    second = await world.ingest(world.root, space, "a.md", TEXT)
    assert second.id != first.id
    assert (second.version, second.state) == (1, "ready")
    assert {hit.document_id for hit in (await world.search(world.root, "quokka budget")).hits} == {second.id}
    ids = {chunk["chunk_id"] for chunk in await world.chunks(second.id, 1)}
    assert await world.points(second.id) == (ids, ids)


async def test_a_vector_that_another_document_uses_stays(world: World) -> None:
    space = await world.space(world.root)
    first = await world.ingest(world.root, space, "first.md", TEXT, title="Same")
    second = await world.ingest(world.root, space, "second.md", TEXT, title="Same")
    await world.remove(world.root, first.id)
    assert await world.count("embeddings_cache") > 0
    assert len(await world.found(world.root, "quokka budget")) == 1
    await world.remove(world.root, second.id)
    assert await world.count("embeddings_cache") == 0


async def test_a_space_goes_with_all_its_documents_in_windows(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.ingestion.space_removal.WINDOW", 2)
    space, other = await world.space(world.root, name="Wollongong office"), await world.space(world.root)
    for number in range(3):
        await world.upload(world.root, space, f"{number}.md", f"{TEXT} Number {number}.")
    await world.upload(world.root, space, "pack.zip", made_files.archive({"note.md": TEXT.encode()}))
    kept = await world.ingest(world.root, other, "kept.md", "# Canteen\n\nLunch is served at noon.")
    await world.reception.remove_space(world.root.actor, space)
    assert not any("quokka" in text for text in await world.found(world.root, "quokka budget"))
    with pytest.raises(Problem):
        await world.upload(world.root, space, "late.md", TEXT)
    await world.work.everything(TENANT)
    assert await world.count("documents", space_id=space, removed_at=None) == 0
    assert await world.count("space_statistics", space_id=space) == 0
    assert {document.document for document in (await world.vectors.list_documents()).documents} == {kept.id}
    assert {document.document for document in (await world.keywords.list_documents()).documents} == {kept.id}
    await assert_nowhere(world, *WORDS)


async def test_new_readers_reach_both_indexes(world: World) -> None:
    reader = await world.person()
    space = await world.space(world.root, viewers=[reader])
    document = await world.ingest(world.root, space, "a.md", TEXT)
    world.model.asked.clear()
    await world.reception.set_readers(world.root.actor, document.id, [])
    assert await world.found(reader, "quokka budget") == []
    await world.work.everything(TENANT)
    for index in (world.vectors, world.keywords):
        assert (await index.document_state(TENANT, document.id)).access_versions == (2,)
    await world.reception.set_readers(world.root.actor, document.id, [f"user:{reader.id}"])
    await world.work.everything(TENANT)
    assert len(await world.found(reader, "quokka budget")) == 1
    assert world.model.asked == []


async def run_history(world: World, document_id: str) -> list[DomainEvent]:
    async with world.database.begin(TENANT) as transaction:
        streams = [f"run:{run['id']}" for run in await world.runs(document_id)]
        return [event for stream in streams for event in await event_log.of_stream(transaction, stream)]


async def space_mean(world: World, space: str) -> tuple[int, list[float]]:
    async with world.database.begin(TENANT) as transaction:
        count, mean = await embeddings_store.mean_of_spaces(transaction, world.model.name, [space])
    return count, [] if mean is None else mean.tolist()
