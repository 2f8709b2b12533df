"""The relay as a process of its own: `perdure relay`, for a cluster. In `perdure up` it runs beside the API."""

from __future__ import annotations

import asyncio
import logging
import signal

from infra import temporal_client
from infra.failpoints import failpoint_from
from infra.load_settings import BadSettings
from schemas.settings import Settings
from services.events.delivery import OutboxDelivery
from services.events.reconciler import Reconciler
from services.events.relay import Relay
from services.gateways.kafka_marker import KafkaMarker
from services.gateways.kafka_publisher import KafkaPublisher
from services.gateways.temporal_gateway import TemporalGateway
from services.stores.database import Database

logger = logging.getLogger(__name__)


def run(settings: Settings) -> int:
    """Relay and reconciler until SIGTERM or SIGINT; the exit code. Raises EngineDown when Temporal is away at the start."""
    database_url, temporal, bootstrap = settings.database_url, settings.temporal_address, settings.kafka_bootstrap
    if database_url is None or temporal is None or bootstrap is None:
        raise BadSettings(
            "the relay needs PERDURE_DATABASE_URL, PERDURE_TEMPORAL_ADDRESS and PERDURE_KAFKA_BOOTSTRAP; set them"
        )
    return asyncio.run(_run(settings, database_url, temporal, bootstrap))


async def _run(settings: Settings, database_url: str, temporal: str, bootstrap: str) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    client = await temporal_client.connect(settings, temporal)
    gateway = TemporalGateway(client, eager_start=False)
    database, publisher, marker = Database(database_url), KafkaPublisher(bootstrap), KafkaMarker(bootstrap)
    delivery = OutboxDelivery(
        database,
        gateway,
        publisher,
        batch=settings.events.relay_batch,
        failpoint=failpoint_from(settings.failpoints),
    )
    parts = [
        asyncio.create_task(Relay(database, delivery, marker, settings.events).run(), name="relay"),
        asyncio.create_task(Reconciler(database, gateway, settings.work).run(), name="reconciler"),
    ]
    stopping = asyncio.create_task(stop.wait())
    done, _ = await asyncio.wait([*parts, stopping], return_when=asyncio.FIRST_COMPLETED)
    for part in [*parts, stopping]:
        part.cancel()
    await asyncio.gather(*parts, stopping, return_exceptions=True)
    await marker.close()
    await publisher.close()
    await database.close()
    for part in done - {stopping}:
        logger.error("%s ended", part.get_name(), exc_info=part.exception())
    return 0 if stop.is_set() else 1
