"""From the outbox to Temporal: every start once, refused ones end their run, and nobody waits for another."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from temporalio.client import Client

from schemas.runs import RunEnd
from services.events import run_ending
from services.events.delivery import OutboxDelivery
from services.gateways.kafka_record import KafkaRecord
from services.gateways.temporal_gateway import TemporalGateway
from services.stores import runs_store
from services.stores.database import Database
from services.stores.runs_store import TEMPORAL
from tests.integration.events import facts, runs
from tests.integration.events.facts import TENANT


class NoKafka:
    async def publish(self, records: Sequence[KafkaRecord]) -> list[str | None]:
        raise AssertionError("nothing here goes to Kafka")


class Recorder:
    """Takes every record."""

    def __init__(self) -> None:
        self.records: list[KafkaRecord] = []

    async def publish(self, records: Sequence[KafkaRecord]) -> list[str | None]:
        self.records += records
        return [None] * len(records)


async def waiting_for_temporal(database: Database) -> int:
    sql = "SELECT count(*) AS count FROM outbox WHERE destination = 'temporal' AND delivered_at IS NULL"
    return int((await facts.rows(database, sql))[0]["count"])


async def test_the_request_path_starts_the_workflow_of_its_run(database: Database, gateway: TemporalGateway) -> None:
    run_id = await runs.queue_ingest(database, "d1")
    await OutboxDelivery(database, gateway, NoKafka()).deliver_head(TEMPORAL, f"run:{run_id}")
    view = await gateway.describe(f"ingest:{TENANT}:d1:1")
    assert view is not None
    assert (view.run_id, view.closed) == (run_id, False)
    assert await waiting_for_temporal(database) == 0


async def test_a_kill_between_start_and_mark_starts_nothing_twice(database: Database, gateway: TemporalGateway) -> None:
    class Killed(BaseException):
        pass

    def kill(name: str) -> None:
        assert name == "start.before_outbox_mark"
        raise Killed

    run_id = await runs.queue_ingest(database, "d1")
    dying = OutboxDelivery(database, gateway, NoKafka(), failpoint=kill)
    assert isinstance((await asyncio.gather(dying.deliver_batch(TEMPORAL), return_exceptions=True))[0], Killed)
    first = await gateway.describe(f"ingest:{TENANT}:d1:1")
    assert await waiting_for_temporal(database) == 1
    await OutboxDelivery(database, gateway, NoKafka()).deliver_batch(TEMPORAL)
    assert await gateway.describe(f"ingest:{TENANT}:d1:1") == first
    assert first is not None
    assert first.run_id == run_id
    assert await waiting_for_temporal(database) == 0


async def test_a_run_that_has_ended_is_not_started(database: Database, gateway: TemporalGateway) -> None:
    run_id = await runs.queue_ingest(database, "d1")
    async with database.begin(TENANT) as transaction:
        await run_ending.end(transaction, run_id, RunEnd(state="cancelled"))
    await OutboxDelivery(database, gateway, NoKafka()).deliver_batch(TEMPORAL)
    assert await gateway.describe(f"ingest:{TENANT}:d1:1") is None
    assert await waiting_for_temporal(database) == 0


async def test_a_start_that_is_refused_for_good_ends_run_and_document_and_the_stream_moves_on(
    database: Database, gateway: TemporalGateway
) -> None:
    run_id = await runs.queue_ingest(database, "d1", document_id="d1", version=1, from_stage=[1, 2])
    async with database.begin(TENANT) as transaction:
        await runs_store.request_cancel(transaction, run_id, "ada")
    await OutboxDelivery(database, gateway, NoKafka()).deliver_batch(TEMPORAL)
    row = await runs.run(database, run_id)
    assert (row["state"], row["error"]["code"]) == ("failed", "internal")
    assert await runs.told(database, run_id) == ["run.failed"]
    document = (await facts.rows(database, "SELECT state FROM documents"))[0]
    assert document["state"] == "failed"
    assert await waiting_for_temporal(database) == 0
    given_up = await facts.rows(database, "SELECT error FROM outbox WHERE error IS NOT NULL")
    assert [row["error"].partition(":")[0] for row in given_up] == ["internal"]


async def test_a_signal_for_a_workflow_that_is_gone_counts_as_delivered(
    database: Database, gateway: TemporalGateway, temporal: Client
) -> None:
    run_id = await runs.queue_ingest(database, "d1")
    delivery = OutboxDelivery(database, gateway, NoKafka())
    await delivery.deliver_batch(TEMPORAL)
    await temporal.get_workflow_handle(f"ingest:{TENANT}:d1:1").terminate()
    async with database.begin(TENANT) as transaction:
        await runs_store.request_cancel(transaction, run_id, "ada")
    await delivery.deliver_batch(TEMPORAL)
    assert await waiting_for_temporal(database) == 0


async def test_a_run_waits_until_the_older_one_has_left_the_workflow_id(
    database: Database, gateway: TemporalGateway, temporal: Client
) -> None:
    older = await runs.queue_ingest(database, "d1")
    delivery = OutboxDelivery(database, gateway, NoKafka())
    await delivery.deliver_batch(TEMPORAL)
    newer, other = await runs.queue_ingest(database, "d1"), await runs.queue_ingest(database, "d2")
    delivered = await delivery.deliver_batch(TEMPORAL)
    assert delivered.wait_s is not None
    assert await gateway.describe(f"ingest:{TENANT}:d2:1") is not None, f"{other} is another stream"
    view = await gateway.describe(f"ingest:{TENANT}:d1:1")
    assert view is not None
    assert view.run_id == older
    await temporal.get_workflow_handle(f"ingest:{TENANT}:d1:1").terminate()

    async def newer_runs() -> bool:
        await delivery.deliver_batch(TEMPORAL)
        found = await gateway.describe(f"ingest:{TENANT}:d1:1")
        return found is not None and found.run_id == newer

    await facts.until(newer_runs)


async def test_a_late_signal_does_not_reach_the_next_run_under_the_same_id(
    database: Database, gateway: TemporalGateway, temporal: Client
) -> None:
    older = await runs.queue_ingest(database, "d1")
    delivery = OutboxDelivery(database, gateway, NoKafka())
    await delivery.deliver_batch(TEMPORAL)
    async with database.begin(TENANT) as transaction:
        await runs_store.request_cancel(transaction, older, "ada")
        await run_ending.end(transaction, older, RunEnd(state="cancelled"))
    await temporal.get_workflow_handle(f"ingest:{TENANT}:d1:1").terminate()
    await runs.queue_ingest(database, "d1")
    await delivery.deliver_batch(TEMPORAL)
    history = await temporal.get_workflow_handle(f"ingest:{TENANT}:d1:1").fetch_history()
    assert not [event for event in history.events if event.HasField("workflow_execution_signaled_event_attributes")]


async def test_temporal_away_holds_up_no_event_and_no_request(database: Database) -> None:
    client = await Client.connect("127.0.0.1:1", lazy=True)
    recorder = Recorder()
    run_id = await runs.queue_ingest(database, "d1")
    delivery = OutboxDelivery(database, TemporalGateway(client, eager_start=False), recorder)
    await delivery.deliver_head(TEMPORAL, f"run:{run_id}")
    for topic in ("perdure.runs", "perdure.documents"):
        await delivery.deliver_batch(topic)
    assert [record.topic for record in recorder.records] == ["perdure.runs", "perdure.documents"]
    assert await waiting_for_temporal(database) == 1
