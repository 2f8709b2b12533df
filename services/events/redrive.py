"""Gives dead letters another chance: `perdure events redrive`."""

from __future__ import annotations

import asyncio
from typing import Any

from schemas.errors import EngineDown
from services.events.dead_letter import Received, redriven
from services.events.publisher import Publisher
from services.gateways.kafka_reader import KafkaReader
from services.gateways.kafka_topics import DEAD_LETTER_TOPICS

GROUP = "perdure-redrive"


async def redrive(bootstrap: str, publisher: Publisher) -> dict[str, int]:
    """Sends what lies in the dead letter topics to where it came from; how many records, by dead letter topic.

    Each is sent once: a group remembers how far the last call came. A killed call may send some again, which their
    consumer drops. Raises EngineDown; what was sent until then stays sent.
    """
    return {topic: await _redrive_topic(bootstrap, topic, publisher) for topic in DEAD_LETTER_TOPICS}


async def _redrive_topic(bootstrap: str, topic: str, publisher: Publisher) -> int:
    reader = await asyncio.to_thread(KafkaReader, bootstrap, topic, GROUP)
    try:
        sent = 0
        batches = reader.batches()
        while (batch := await asyncio.to_thread(next, batches, None)) is not None:
            records = [redriven(_received(record)) for record in batch]
            if any(await publisher.publish(records)):
                raise EngineDown("kafka", "Kafka did not acknowledge all dead letters; call redrive again")
            await asyncio.to_thread(reader.commit)
            sent += len(records)
        return sent
    finally:
        await asyncio.to_thread(reader.close)


def _received(record: Any) -> Received:
    return Received(
        topic=record.topic, partition=record.partition, offset=record.offset, key=record.key, value=record.value
    )
