"""The process of the Faust consumers: `perdure consumers`, or a child of `perdure up`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from typing import Any

from infra.load_settings import BadSettings, load_settings
from schemas.errors import EngineDown
from schemas.settings import Settings
from services.consumers import faust_app
from services.consumers.audit_log import AuditLog
from services.consumers.consumption import Consumption
from services.events.backoff import Backoff
from services.gateways.kafka_publisher import KafkaPublisher
from services.stores.database import Database

STOP_WITHIN_S = 2.0
POOL_SIZE = 4

logger = logging.getLogger(__name__)


def run(settings: Settings) -> int:
    """Runs until SIGTERM or SIGINT; the exit code. 1 when Faust gave up: whoever supervises starts it again.

    The process is left at once after that, whatever threads of Kafka clients still wait for: what was not committed
    is consumed again.
    """
    if settings.database_url is None or settings.kafka_bootstrap is None:
        raise BadSettings("consumers need PERDURE_DATABASE_URL and PERDURE_KAFKA_BOOTSTRAP; set both")
    return asyncio.run(_run(settings.database_url, settings.kafka_bootstrap, settings))


async def _run(database_url: str, bootstrap: str, settings: Settings) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    database = Database(database_url, pool_size=POOL_SIZE)
    publisher = KafkaPublisher(bootstrap)
    audit = AuditLog()
    consumption = Consumption(database, audit, publisher, settings.events.handler_tries)
    started = asyncio.create_task(_wait_for_engines(consumption, publisher))
    await _first(started, asyncio.create_task(stop.wait()))
    if stop.is_set():
        return 0
    app = faust_app.build(bootstrap, audit.name, audit.topics, consumption, settings.events)
    serving = asyncio.create_task(_serve(app))
    await _first(serving, asyncio.create_task(stop.wait()))
    code = 0 if stop.is_set() else 1
    with contextlib.suppress(TimeoutError, asyncio.CancelledError):
        async with asyncio.timeout(STOP_WITHIN_S):
            await app.stop()
            await publisher.close()
            await database.close()
    _leave(code)
    return code


async def _wait_for_engines(consumption: Consumption, publisher: KafkaPublisher) -> None:
    """Registered in Postgres, and the topics are there: Faust does not start without its broker."""
    backoff = Backoff()
    while True:
        try:
            await consumption.start()
            await publisher.open()
        except EngineDown as down:
            logger.warning("the consumers wait: %s", down.detail)
            await asyncio.sleep(backoff.next_s())
        else:
            return


async def _serve(app: Any) -> None:
    """Returns when Faust stops by itself, which it does when it cannot go on."""
    await app.start()
    logger.info("the consumers listen")
    await app.wait_until_stopped()


async def _first(*tasks: asyncio.Task[Any]) -> None:
    done, waiting = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
    for task in done:
        if (error := task.exception()) is not None:
            logger.error("the consumers stop", exc_info=error)


def _leave(code: int) -> None:
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("kafka").setLevel(logging.ERROR)
    sys.exit(run(load_settings(os.environ)))
