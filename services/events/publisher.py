"""What sends records to Kafka, as those see it who only want them sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from services.gateways.kafka_record import KafkaRecord


class Publisher(Protocol):
    """What is needed of `services/gateways/kafka_publisher.py`."""

    async def publish(self, records: Sequence[KafkaRecord]) -> list[str | None]:
        """Per record None when it is acknowledged, or why it is not. Raises EngineDown when none is."""
        ...
