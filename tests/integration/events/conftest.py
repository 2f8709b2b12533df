from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from infra import temporal_client
from services.gateways.kafka_marker import KafkaMarker
from services.gateways.kafka_publisher import KafkaPublisher
from services.gateways.temporal_gateway import TemporalGateway
from services.gateways.temporal_payloads import perdure_data_converter
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


@pytest.fixture
async def temporal() -> AsyncIterator[Client]:
    """A dev server of this test alone, with our search attributes and nobody who works."""
    server = Path(sys.executable).parent / "temporal"
    environment = await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(server), data_converter=perdure_data_converter
    )
    async with environment:
        await temporal_client.require_search_attributes(environment.client)
        yield environment.client


@pytest.fixture
def gateway(temporal: Client) -> TemporalGateway:
    return TemporalGateway(temporal, eager_start=False)
