from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.gateways.kafka_marker import KafkaMarker
from services.gateways.kafka_publisher import KafkaPublisher
from tests.integration.events.broker import Broker


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    async with Broker(tmp_path) as broker:
        yield broker


@pytest.fixture
async def publisher(broker: Broker) -> AsyncIterator[KafkaPublisher]:
    publisher = KafkaPublisher(broker.bootstrap, timeout_s=2.0)
    yield publisher
    await publisher.close()


@pytest.fixture
async def marker(broker: Broker) -> AsyncIterator[KafkaMarker]:
    marker = KafkaMarker(broker.bootstrap)
    yield marker
    await marker.close()
