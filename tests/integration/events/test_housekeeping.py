"""Housekeeping throws away what is useless and nothing else."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import text

from schemas.runs import RunEnd, RunEventDraft
from schemas.settings import Settings
from services.events import run_ending
from services.events.blob_sweep import GRACE_S
from services.events.housekeeping import LEADER, Housekeeping
from services.stores import consumers_store, outbox_store, run_event_log
from services.stores.blob_store import BlobStore
from services.stores.database import Database
from tests.integration.events import facts, runs
from tests.integration.events.facts import ACCESS_TOPIC, TENANT


class Clock:
    """Seconds that a test moves."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def housekeeping(database: Database, tmp_path: Path, clock: Clock | None = None) -> Housekeeping:
    return Housekeeping(database, BlobStore.at_directory(tmp_path / "blobs"), Settings(), clock or Clock())


async def test_token_rows_go_an_hour_after_the_end_and_the_answer_stays(database: Database, tmp_path: Path) -> None:
    ended, fresh = await runs.queue_ingest(database, "d1"), await runs.queue_ingest(database, "d2")
    for run_id in (ended, fresh):
        async with database.begin(TENANT) as transaction:
            drafts = [RunEventDraft(type=type) for type in ("token", "thinking", "answer.text")]
            await run_event_log.append(transaction, run_id, drafts)
            await run_ending.end(transaction, run_id, RunEnd(state="succeeded"))
    await facts.rows(
        database, "UPDATE runs SET ended_at = ended_at - interval '2 hours' WHERE id = :id RETURNING id", id=ended
    )
    tidied = await housekeeping(database, tmp_path).tidy_up()
    assert tidied["token_runs"] == 1
    assert await runs.told(database, ended) == ["answer.text", "run.succeeded"]
    assert await runs.told(database, fresh) == ["token", "thinking", "answer.text", "run.succeeded"]


async def test_delivered_outbox_rows_go_after_a_day_and_what_is_owed_stays(database: Database, tmp_path: Path) -> None:
    await facts.write(database, facts.new_space(), 3)
    first, second, _ = await facts.rows(database, "SELECT id FROM outbox ORDER BY id")
    async with database.every_tenant("a test delivers") as transaction:
        for row in (first, second):
            await outbox_store.mark_delivered(transaction, row["id"])
        aged = "UPDATE outbox SET created_at = created_at - interval '3 days', delivered_at = "
        await transaction.execute(
            text(f"{aged} CASE WHEN id = :old THEN delivered_at - interval '25 hours' ELSE delivered_at END"),
            {"old": first["id"]},
        )
    tidied = await housekeeping(database, tmp_path).tidy_up()
    assert tidied["outbox_rows"] == 1
    assert len(await facts.rows(database, "SELECT id FROM outbox")) == 2


async def test_of_what_a_consumer_had_the_newest_row_per_stream_is_enough(database: Database, tmp_path: Path) -> None:
    stream, other = facts.new_space(), facts.new_space()
    async with database.every_tenant("a consumer is registered for all tenants") as transaction:
        await consumers_store.register(transaction, "audit", [ACCESS_TOPIC])
    await facts.write(database, stream, 3)
    async with database.begin(TENANT) as transaction:
        versions = [(stream, 1), (stream, 2), (other, 1)]
        await consumers_store.mark_consumed(transaction, "audit", versions)
    async with database.every_tenant("a test sends") as transaction:
        await outbox_store.mark_sent(
            transaction, [row["id"] for row in await transaction.all(text("SELECT id FROM outbox"))]
        )
    assert (await housekeeping(database, tmp_path).tidy_up())["consumed_rows"] == 1
    async with database.begin(TENANT) as transaction:
        newest = await consumers_store.newest_versions(transaction, "audit", {stream: 0, other: 0})
    assert newest == {stream: 2, other: 1}
    async with database.every_tenant("the relay settles") as transaction:
        assert await outbox_store.settle(transaction, ACCESS_TOPIC) == 2


async def test_a_blob_goes_when_no_row_has_named_it_for_an_hour(database: Database, tmp_path: Path) -> None:
    blobs, clock = BlobStore.at_directory(tmp_path / "blobs"), Clock()
    await runs.queue_ingest(database, "d1")
    await facts.rows(database, "UPDATE document_versions SET blob_key = 'acme/uploads/named' RETURNING number")
    kept = {"acme/uploads/named", "acme/documents/d1/1/canonical.json", "acme/answers/a1/reply", "acme/uploads/late"}
    lost = {"acme/uploads/refused", "acme/documents/d1/2/text", "globex/documents/gone/1/text"}
    for key in kept | lost:
        await blobs.put(key, b"x")
    keeping = housekeeping(database, tmp_path, clock)
    assert (await keeping.tidy_up())["blobs"] == 0
    clock.now_s = GRACE_S - 1
    assert (await keeping.tidy_up())["blobs"] == 0
    await facts.rows(database, "UPDATE document_versions SET text_key = 'acme/uploads/late' RETURNING number")
    clock.now_s = GRACE_S + 1
    assert (await keeping.tidy_up())["blobs"] == 3
    assert {key async for key in blobs.list()} == kept


async def test_one_leader_tidies_up(database: Database, tmp_path: Path) -> None:
    async with database.every_tenant("a test plays the other leader") as transaction:
        assert await transaction.try_lock(LEADER)
        assert await housekeeping(database, tmp_path).tidy_up() == {}
