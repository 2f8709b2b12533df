"""Relay, broker and the Faust process together, each killed in turn."""

from __future__ import annotations

import asyncio

from sqlalchemy import text

from services.consumers.registration import register_all
from services.events import redrive
from services.gateways.kafka_marker import KafkaMarker
from services.gateways.kafka_publisher import KafkaPublisher
from services.gateways.kafka_record import KafkaRecord
from services.stores.database import Database
from tests.integration.events import facts
from tests.integration.events.broker import Broker
from tests.integration.events.consumer_process import ConsumerProcess
from tests.integration.events.facts import ACCESS_TOPIC


async def all_had(database: Database, streams: list[str], versions: int) -> bool:
    found = await facts.audited(database)
    return all(len(found.get(stream, [])) >= versions for stream in streams)


async def test_a_broker_killed_with_all_it_held_loses_doubles_and_reorders_nothing(
    database: Database, database_url: str, broker: Broker, publisher: KafkaPublisher, marker: KafkaMarker
) -> None:
    await register_all(database)
    streams = [facts.new_space() for _ in range(8)]
    with ConsumerProcess(database_url, broker.bootstrap):
        async with facts.relaying(database, publisher, marker):
            writing = asyncio.gather(*(facts.write(database, stream, 20) for stream in streams))
            await facts.until(lambda: all_had(database, streams, 3))  # the group has joined and reads
            broker.kill()
            await broker.start()
            await writing
            await facts.until(lambda: all_had(database, streams, 20), within_s=60)
            await facts.until(lambda: _nothing_owed(database))
    assert await facts.audited(database) == {stream: list(range(1, 21)) for stream in streams}


async def test_a_consumer_killed_in_the_middle_of_a_batch_has_every_event_once_afterwards(
    database: Database, database_url: str, broker: Broker, publisher: KafkaPublisher, marker: KafkaMarker
) -> None:
    await register_all(database)
    streams = [facts.new_space() for _ in range(8)]
    async with facts.relaying(database, publisher, marker):
        with ConsumerProcess(database_url, broker.bootstrap) as consumers:
            async with database.every_tenant("a test stops the consumer between its effect and its mark") as holding:
                await holding.execute(text("LOCK TABLE consumed IN SHARE MODE"))
                await asyncio.gather(*(facts.write(database, stream, 10) for stream in streams))
                await facts.until(lambda: _waits_for_mark(database), within_s=60)
                consumers.kill()
            assert not await facts.audited(database)
            await asyncio.gather(*(facts.write(database, stream, 5) for stream in streams))
            consumers.start()
            await facts.until(lambda: all_had(database, streams, 15), within_s=90)
            code, _ = consumers.terminate()
    assert code == 0
    assert await facts.audited(database) == {stream: list(range(1, 16)) for stream in streams}


async def test_a_poisoned_record_goes_to_the_dead_letter_topic_and_what_follows_is_handled(
    database: Database, database_url: str, broker: Broker, publisher: KafkaPublisher, marker: KafkaMarker
) -> None:
    await register_all(database)
    stream = facts.new_space()
    poison = KafkaRecord(ACCESS_TOPIC, stream.encode(), b"\x00 no event")
    async with facts.relaying(database, publisher, marker):
        await publisher.publish([poison])
        await facts.write(database, stream, 2)
        with ConsumerProcess(database_url, broker.bootstrap):
            await facts.until(lambda: all_had(database, [stream], 2), within_s=60)
    dead = await asyncio.to_thread(broker.records, f"{ACCESS_TOPIC}.dlq")
    assert [(key, value) for key, value, _ in dead] == [(stream.encode(), poison.value)]
    assert await redrive.redrive(broker.bootstrap, publisher) == {
        "perdure.access.dlq": 1, "perdure.approvals.dlq": 0, "perdure.documents.dlq": 0, "perdure.runs.dlq": 0,
    }  # fmt: skip
    assert sum((await redrive.redrive(broker.bootstrap, publisher)).values()) == 0
    again = [
        headers for _, value, headers in await asyncio.to_thread(broker.records, ACCESS_TOPIC) if value == poison.value
    ]
    assert [sorted(headers) for headers in again] == [[], ["perdure-redriven"]]


async def _nothing_owed(database: Database) -> bool:
    return await facts.undelivered(database) == 0


async def _waits_for_mark(database: Database) -> bool:
    waiting = "SELECT 1 FROM pg_locks WHERE relation = 'consumed'::regclass AND NOT granted"
    return bool(await facts.rows(database, waiting))
