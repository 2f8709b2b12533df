"""`perdure api` and `perdure worker`: parts of `up` as processes of their own.

The embedded indexes admit one process, so what opens indexes runs apart only when all of them are servers. The role `stream`
opens none: any number of such processes may serve runs, events and identity on one Postgres.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from fastapi import FastAPI
from temporalio.client import Client

from infra import interpreter, run_worker, serve_api, temporal_client, wiring
from infra.failpoints import failpoint_from
from infra.load_settings import BadSettings
from infra.probes import probes_of
from schemas.settings import Settings
from services.access.identity import Identity
from services.api.app import create_app
from services.container import EngineProbe, Stream
from services.events.delivery import OutboxDelivery
from services.events.run_event_hub import RunEventHub
from services.gateways.kafka_publisher import KafkaPublisher
from services.stores.database import Database

NEEDED = ("database_url", "temporal_address", "kafka_bootstrap", "qdrant_url", "elasticsearch_url", "blob_url")


def require_servers(settings: Settings, role: str) -> None:
    """BadSettings unless every engine is a server that several processes may share."""
    missing = [f"PERDURE_{name.upper()}" for name in NEEDED if getattr(settings, name) is None]
    if missing:
        raise BadSettings(f"`perdure {role}` shares its engines with other processes: set {', '.join(missing)}")


async def api(settings: Settings, role: str, port: int) -> None:
    if role == "stream":
        await _stream_api(settings, port)
        return
    require_servers(settings, "api")
    async with AsyncExitStack() as parts:
        services, publisher, _ = await _services(settings, parts)
        await _serve(create_app(wiring.build_serving(services, probes_of(services.engines, publisher))), port)


async def _stream_api(settings: Settings, port: int) -> None:
    if settings.database_url is None:
        raise BadSettings("`perdure api --role stream` needs PERDURE_DATABASE_URL")
    database = Database(settings.database_url)

    async def check() -> str:
        await database.ping()
        return "answers"

    probe = EngineProbe("postgres", check, "check the address of postgres", needed=True)
    try:
        await _serve(
            create_app(Stream(settings, database, RunEventHub(database), Identity.of(database), [probe])), port
        )
    finally:
        await database.close()


async def worker(settings: Settings) -> None:
    require_servers(settings, "worker")
    async with AsyncExitStack() as parts:
        services, _, client = await _services(settings, parts)
        watching = asyncio.create_task(services.cancels.run())
        parts.callback(watching.cancel)
        await services.statistics.prepare()
        workers = run_worker.build_workers(client, wiring.build_activities(services), settings.work)
        await _until_signal(lambda stop: run_worker.run_workers(workers, stop))


async def _services(settings: Settings, parts: AsyncExitStack) -> tuple[wiring.Services, KafkaPublisher, Client]:
    client = await temporal_client.connect(settings, str(settings.temporal_address))
    await temporal_client.require_search_attributes(client)
    engines = wiring.build_engines(settings, str(settings.database_url), client, Path(), eager=False)
    parts.push_async_callback(engines.close)
    await engines.open()
    publisher = KafkaPublisher(str(settings.kafka_bootstrap))
    parts.push_async_callback(publisher.close)
    failpoint = failpoint_from(settings.failpoints)
    delivery = OutboxDelivery(engines.database, engines.temporal, publisher, failpoint=failpoint)
    return wiring.build_services(engines, delivery, failpoint), publisher, client


async def _serve(app: FastAPI, port: int) -> None:
    with serve_api.bind(port) as listening:
        server = serve_api.build_server(app)
        print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)

        async def until(stop: asyncio.Event) -> None:
            serving = asyncio.create_task(server.serve(sockets=[listening]))
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            await app.state.perdure.container.hub.stop()
            server.should_exit = True
            await serving

        await _until_signal(until)


async def _until_signal(run: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    interpreter.settle()
    await run(stop)
