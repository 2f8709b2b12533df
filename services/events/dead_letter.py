"""A record that could not be handled, as it lies in its dead letter topic, and how it is given another chance."""

from __future__ import annotations

from dataclasses import dataclass

from services.gateways.kafka_record import KafkaRecord
from services.gateways.kafka_topics import DEAD_LETTER_SUFFIX

REDRIVEN = "perdure-redriven"
REASON = "perdure-reason"
CONSUMER = "perdure-consumer"
PARTITION = "perdure-partition"
OFFSET = "perdure-offset"


@dataclass(frozen=True)
class Received:
    """A record as it came from Kafka. `redriven`: it was dead once and is tried again."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    redriven: bool = False


def dead_letter(received: Received, consumer: str, reason: str) -> KafkaRecord:
    """The record's own bytes, never decoded; what is known about it is in the headers."""
    return KafkaRecord(
        topic=received.topic + DEAD_LETTER_SUFFIX,
        key=received.key,
        value=received.value or b"",
        headers=(
            (REASON, reason.encode()),
            (CONSUMER, consumer.encode()),
            (PARTITION, str(received.partition).encode()),
            (OFFSET, str(received.offset).encode()),
        ),
    )


def redriven(dead: Received) -> KafkaRecord:
    """The same bytes for the topic they came from."""
    return KafkaRecord(
        topic=dead.topic.removesuffix(DEAD_LETTER_SUFFIX),
        key=dead.key,
        value=dead.value or b"",
        headers=((REDRIVEN, b"1"),),
    )
