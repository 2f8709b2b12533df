"""The way of events over a real Kafka: `tests/peers/kafka/start`, then `PERDURE_TEST_KAFKA_BOOTSTRAP=host:port`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

import pytest

from services.consumers.registration import register_all
from services.events import redrive
from services.gateways.kafka_marker import KafkaMarker
from services.gateways.kafka_publisher import KafkaPublisher
from services.gateways.kafka_record import KafkaRecord
from services.stores.database import Database
from tests.integration.events import facts
from tests.integration.events.consumer_process import ConsumerProcess
from tests.integration.events.facts import ACCESS_TOPIC

BOOTSTRAP = os.environ.get("PERDURE_TEST_KAFKA_BOOTSTRAP", "")

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(not BOOTSTRAP, reason="PERDURE_TEST_KAFKA_BOOTSTRAP names no server"),
]


@pytest.fixture
async def publisher() -> AsyncIterator[KafkaPublisher]:
    publisher = KafkaPublisher(BOOTSTRAP)
    yield publisher
    await publisher.close()


@pytest.fixture
async def marker() -> AsyncIterator[KafkaMarker]:
    marker = KafkaMarker(BOOTSTRAP)
    yield marker
    await marker.close()


async def test_events_reach_the_audit_log_once_and_in_order_also_over_a_kill(
    database: Database, database_url: str, publisher: KafkaPublisher, marker: KafkaMarker
) -> None:
    await register_all(database)
    streams = [facts.new_space() for _ in range(8)]

    async def all_had(versions: int) -> bool:
        found = await facts.audited(database)
        return all(len(found.get(stream, [])) >= versions for stream in streams)

    async with facts.relaying(database, publisher, marker):
        with ConsumerProcess(database_url, BOOTSTRAP) as consumers:
            writing = asyncio.gather(*(facts.write(database, stream, 20) for stream in streams))
            await facts.until(lambda: all_had(1), within_s=60)
            consumers.kill()
            await writing
            consumers.start()
            await facts.until(lambda: all_had(20), within_s=90)
            assert consumers.terminate()[0] == 0
        await facts.until(lambda: _nothing_owed(database))
    assert await facts.audited(database) == {stream: list(range(1, 21)) for stream in streams}


async def test_a_broker_that_keeps_its_topics_has_forgotten_nothing(marker: KafkaMarker) -> None:
    await marker.has_forgotten()  # the first relay of a cluster makes the marker
    assert not await marker.has_forgotten()
    other = KafkaMarker(BOOTSTRAP)
    assert not await other.has_forgotten()
    await other.close()


async def test_dead_letters_are_sent_again_once(publisher: KafkaPublisher) -> None:
    await redrive.redrive(BOOTSTRAP, publisher)
    await publisher.publish([KafkaRecord(f"{ACCESS_TOPIC}.dlq", b"k", b"dead", (("perdure-reason", b"test"),))])
    assert (await redrive.redrive(BOOTSTRAP, publisher))[f"{ACCESS_TOPIC}.dlq"] == 1
    assert sum((await redrive.redrive(BOOTSTRAP, publisher)).values()) == 0


async def _nothing_owed(database: Database) -> bool:
    return await facts.undelivered(database) == 0
