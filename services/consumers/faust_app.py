"""A Faust app that hands a consumer its records, in batches as large as what waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import faust
from yarl import URL

from schemas.settings import EventSettings
from services.consumers.consumption import Consumption
from services.consumers.kafka_transport import QuickTransport
from services.events.dead_letter import REDRIVEN, Received

BATCH = 200
METADATA_AGE_MS = 5_000
"""How soon a partition that is new to a topic is noticed; the records in it wait for that."""
SESSION_TIMEOUT_S = 6
"""A broker lets a group wait half of it before members get their partitions."""


class StatelessApp(faust.App):
    """An app without tables: what it knows is in Postgres."""

    def _create_directories(self) -> None:
        """Faust would make a folder for its tables where the process was started."""


def build(bootstrap: str, name: str, topics: Sequence[str], consumption: Consumption, settings: EventSettings) -> Any:
    """A Faust app to be started and stopped by the caller. The consumer group is `perdure-<name>`."""
    brokers = [URL(f"kafka://{broker}") for broker in bootstrap.split(",")]
    app = StatelessApp(
        f"perdure-{name}",
        broker=brokers,
        store="memory://",
        key_serializer="raw",
        value_serializer="raw",
        web_enabled=False,
        topic_allow_declare=False,
        topic_disable_leader=True,
        consumer_auto_offset_reset="earliest",
        consumer_metadata_max_age_ms=METADATA_AGE_MS,
        broker_session_timeout=SESSION_TIMEOUT_S,
        broker_heartbeat_interval=1,
        broker_request_timeout=10,
        broker_commit_interval=1,
        stream_wait_empty=False,
        stream_recovery_delay=0,
    )
    app.transport = QuickTransport(brokers, app, fetch_wait_ms=settings.fetch_wait_ms)

    async def consume(stream: Any) -> None:
        """Offsets are committed after the effect: a record is acknowledged when `handle` has returned."""
        records = stream.noack()
        batch: list[Any] = []
        async for event in records.events():
            batch.append(event)
            if len(batch) < BATCH and not records.channel.queue.empty():
                continue
            await consumption.handle([_received(each.message) for each in batch])
            for each in batch:
                await records.ack(each)
            batch.clear()

    app.agent(app.topic(*topics, key_serializer="raw", value_serializer="raw"), name=name)(consume)
    return app


def _received(message: Any) -> Received:
    headers = message.headers or {}
    names = headers if isinstance(headers, dict) else dict(headers)
    return Received(
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        key=message.key,
        value=message.value,
        redriven=REDRIVEN in names,
    )
