"""The product's services in this process, over a Postgres of its own: what a figure's baseline calls straight."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from temporalio.client import Client

from infra import admin_key, wiring
from infra.local_stack import DataDir, LocalStack
from infra.migrate import migrate
from schemas.settings import Settings
from services.access.authenticate import Caller, authenticate
from services.events.delivery import OutboxDelivery
from services.gateways.kafka_publisher import KafkaPublisher

NOWHERE = "127.0.0.1:1"
"""Temporal and Kafka take no part in a baseline."""


@dataclass(frozen=True)
class InProcess:
    """Services and the first admin, as the API would know them."""

    services: wiring.Services
    admin: Caller


@asynccontextmanager
async def services_at(folder: Path) -> AsyncIterator[InProcess]:
    """Built by the composition root, with default settings, over the data directory `folder`."""
    settings = Settings.model_validate({"temporal_address": NOWHERE, "kafka_bootstrap": NOWHERE})
    async with AsyncExitStack() as parts:
        data_dir = DataDir(folder)
        data_dir.hold(datetime.now(UTC))
        parts.callback(data_dir.release)
        stack = LocalStack(settings, data_dir)
        addresses = await stack.start()
        parts.push_async_callback(stack.stop)
        migrate(addresses.database_url)
        client = await Client.connect(NOWHERE, lazy=True)
        engines = wiring.build_engines(settings, addresses.database_url, client, data_dir.path, eager=False)
        parts.push_async_callback(engines.close)
        await engines.open()
        key_file = await admin_key.ensure_admin_key(engines.database, data_dir.keys)
        publisher = KafkaPublisher(NOWHERE)
        parts.push_async_callback(publisher.close)
        delivery = OutboxDelivery(engines.database, engines.temporal, publisher)
        services = wiring.build_services(engines, delivery, _no_failpoint)
        admin = await authenticate(engines.database, key_file.read_text(encoding="utf-8").strip())
        yield InProcess(services, admin)


def _no_failpoint(name: str) -> None:
    """Nothing is killed here."""
