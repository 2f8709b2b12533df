"""`perdure up`: engines, API, workers, relay and reconciler of one machine, started in order and stopped in reverse."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import structlog

from infra import admin_key, interpreter, link_key, migrate, run_worker, serve_api, temporal_client, wiring
from infra import demo as demonstration
from infra.failpoints import failpoint_from
from infra.local_stack import DataDir, EngineAddresses, LocalStack
from infra.probes import probes_of
from infra.up_announcement import UpAnnouncement
from schemas.settings import Settings
from services.api.app import create_app
from services.api.metrics import create_metrics_app
from services.consumers import registration
from services.events.delivery import OutboxDelivery
from services.events.housekeeping import Housekeeping
from services.events.reconciler import Reconciler
from services.events.relay import Relay
from services.gateways.kafka_marker import KafkaMarker
from services.gateways.kafka_publisher import KafkaPublisher
from services.gateways.model_names import EXTRACTIVE
from services.ingestion.index_repair import IndexRepair

_log = structlog.get_logger(__name__)
RESTART_PART_AFTER_S = 1.0
CHAT_CLIENT = "services.gateways.pydantic_ai_chat"


@dataclass(frozen=True)
class UpOptions:
    """What the command line gave."""

    data_dir: Path
    port: int
    demo: bool
    json: bool


async def up(settings: Settings, data_dir: Path, port: int, demo: bool, json: bool) -> None:
    """Runs until SIGINT or SIGTERM. Raises DataDirHeld, EngineDown or OSError (port) before anything stays running."""
    options = UpOptions(data_dir, port, demo, json)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    held = DataDir(data_dir)
    held.hold(datetime.now(UTC))
    try:
        async with AsyncExitStack() as parts:
            listening = serve_api.bind(options.port)
            parts.callback(listening.close)
            await _run(settings, options, held, listening, parts, stop)
    finally:
        (held.run / "up.json").unlink(missing_ok=True)
        held.release()


async def _run(
    settings: Settings,
    options: UpOptions,
    data_dir: DataDir,
    listening: Any,
    parts: AsyncExitStack,
    stop: asyncio.Event,
) -> None:
    stack = LocalStack(settings, data_dir, on_restart=lambda name: _log.warning("engine_restarted", engine=name))
    addresses = await stack.start()
    parts.push_async_callback(stack.stop)
    await asyncio.to_thread(migrate.migrate, addresses.database_url)
    client = await temporal_client.connect(settings, addresses.temporal_address)
    await temporal_client.require_search_attributes(client)
    eager = settings.temporal_address is None
    engines = wiring.build_engines(
        link_key.with_link_key(settings, data_dir.keys),
        addresses.database_url,
        client,
        data_dir.path,
        eager=eager,
        sandboxes=stack.sandboxes,
    )
    parts.push_async_callback(engines.close)
    await registration.register_all(engines.database)  # before the first fact: a consumer is owed what follows
    key_file, _ = await asyncio.gather(admin_key.ensure_admin_key(engines.database, data_dir.keys), engines.open())

    publisher = KafkaPublisher(addresses.kafka_bootstrap)
    parts.push_async_callback(publisher.close)
    failpoint = failpoint_from(settings.failpoints)
    delivery = OutboxDelivery(
        engines.database, engines.temporal, publisher, batch=settings.events.relay_batch, failpoint=failpoint
    )
    services = wiring.build_services(engines, delivery, failpoint)
    workers = run_worker.build_workers(client, wiring.build_activities(services), settings.work)
    background = _Background()
    marker = KafkaMarker(addresses.kafka_bootstrap)
    parts.push_async_callback(marker.close)
    parts.push_async_callback(background.stop)
    background.keep("relay", Relay(engines.database, delivery, marker, settings.events).run)
    background.keep("reconciler", Reconciler(engines.database, engines.temporal, settings.work).run)
    background.keep("housekeeping", Housekeeping(engines.database, engines.blobs, settings).run)
    background.keep("cancel-watch", services.cancels.run)
    background.once("background-sentences", services.statistics.prepare)
    repair = IndexRepair(engines.database, services.index_stage, engines.vectors, engines.keywords, engines.model)
    background.once("index-repair", repair.run)
    if settings.chat_model != EXTRACTIVE:  # the first person to ask would wait seconds for its import
        background.once("chat-client", lambda: asyncio.to_thread(import_module, CHAT_CLIENT))
    await _start_consumers(stack, settings, addresses)

    serving = wiring.build_serving(services, probes_of(engines, publisher))
    server = serve_api.build_server(create_app(serving))
    serving_task = asyncio.create_task(server.serve(sockets=[listening]))
    if settings.metrics_port is not None:
        metrics_socket = serve_api.bind(settings.metrics_port)
        parts.callback(metrics_socket.close)
        metrics_server = serve_api.build_server(create_metrics_app(serving))
        background.once("metrics", lambda: metrics_server.serve(sockets=[metrics_socket]))
    work_stop = asyncio.Event()
    working = asyncio.create_task(run_worker.run_workers(workers, work_stop))
    parts.push_async_callback(_stop_serving, server, serving_task, serving.hub.stop, work_stop, working)

    interpreter.settle()
    announcement = _announcement(addresses, data_dir, key_file, listening.getsockname()[1])
    announcement.write(data_dir.run / "up.json")
    data_dir.announce(announcement.api_url)
    print(announcement.model_dump_json() if options.json else announcement.words(), flush=True)
    if options.demo:
        out, key = sys.stderr if options.json else sys.stdout, key_file.read_text(encoding="utf-8").strip()
        background.once("demo", lambda: demonstration.show(announcement.api_url, key, out))
    await _until_stopped(stop, serving_task, working)


async def _until_stopped(stop: asyncio.Event, *tasks: asyncio.Task[Any]) -> None:
    stopping = asyncio.create_task(stop.wait())
    done, _ = await asyncio.wait([stopping, *tasks], return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    for task in done - {stopping}:
        task.result()


async def _stop_serving(
    server: serve_api.QuietServer,
    serving: asyncio.Task[None],
    stop_hub: Callable[[], Awaitable[None]],
    work_stop: asyncio.Event,
    working: asyncio.Task[None],
) -> None:
    """Callers first, then work: streams end, requests finish, activities get their grace."""
    await stop_hub()
    server.should_exit = True
    work_stop.set()
    await asyncio.gather(serving, working, return_exceptions=True)


async def _start_consumers(stack: LocalStack, settings: Settings, addresses: EngineAddresses) -> None:
    """The Faust consumers in a child: their event loop and their broker connections are their own."""
    env = {
        **os.environ,
        "PERDURE_DATABASE_URL": addresses.database_url,
        "PERDURE_KAFKA_BOOTSTRAP": addresses.kafka_bootstrap,
    }
    env.pop("PERDURE_FAILPOINTS", None)
    await stack.run_child("consumers", [sys.executable, "-m", "infra.main", "consumers"], env)


def _announcement(addresses: EngineAddresses, data_dir: DataDir, key_file: Path, port: int) -> UpAnnouncement:
    return UpAnnouncement(
        api_url=f"http://127.0.0.1:{port}",
        temporal_address=addresses.temporal_address,
        temporal_ui_url=addresses.temporal_ui_url,
        kafka_bootstrap=addresses.kafka_bootstrap,
        database_url=addresses.database_url,
        data_dir=str(data_dir.path),
        admin_key_file=str(key_file),
        pid=os.getpid(),
    )


class _Background:
    """Tasks beside the serving: kept ones are started again when they fail, and all end before the engines do."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    def keep(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        self._tasks.append(asyncio.create_task(self._again(name, run), name=name))

    def once(self, name: str, run: Callable[[], Awaitable[object]]) -> None:
        self._tasks.append(asyncio.create_task(self._logged(name, run), name=name))

    async def _again(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self._logged(name, run)
            await asyncio.sleep(RESTART_PART_AFTER_S)

    @staticmethod
    async def _logged(name: str, run: Callable[[], Awaitable[object]]) -> None:
        try:
            await run()
        except Exception:
            _log.exception("part_failed", part=name)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
