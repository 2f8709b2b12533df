"""Sends records to Kafka over an idempotent producer, which is thrown away and made again when it breaks."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kafka import KafkaProducer
from kafka.errors import KafkaError

from schemas.errors import EngineDown
from services.gateways.kafka_record import KafkaRecord
from services.gateways.kafka_topics import DEAD_LETTER_TOPICS, EVENT_TOPICS, PARTITIONS, KafkaTopics

THREADS = 5
PING_TIMEOUT_S = 2.0

logger = logging.getLogger(__name__)


class KafkaPublisher:
    """Records of one key keep their order within a call; across calls the caller waits for each before the next.

    The producer repeats a request on its own only while `timeout_s` lasts and never out of order (idempotence); sending
    again after that is the outbox's. An idempotent producer stays broken after its broker lost its state
    (UnknownProducerId, then InitProducerId errors), so after any failure it is closed and the next call makes a new one.
    """

    def __init__(self, bootstrap: str, timeout_s: float = 4.0) -> None:
        self._bootstrap = bootstrap
        self._timeout_s = timeout_s
        self._producer: Any = None
        self._opening = threading.Lock()
        self._probe: KafkaTopics | None = None
        self._probing = threading.Lock()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="kafka-publish")

    async def publish(self, records: Sequence[KafkaRecord]) -> list[str | None]:
        """Per record None when all replicas have it, or why it is not sure that they do. Raises EngineDown when none is."""
        if not records:
            return []
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._publish, records)

    async def open(self) -> None:
        """Connects and makes the topics that are missing, which `publish` does too. Raises EngineDown."""
        await asyncio.get_running_loop().run_in_executor(self._threads, self._open)

    async def ping(self) -> None:
        """Raises EngineDown when no broker answers now."""
        await asyncio.get_running_loop().run_in_executor(self._threads, self._ask)

    async def close(self) -> None:
        """What is under way fails; the outbox sends it again."""
        await asyncio.to_thread(self._drop, self._producer)
        if self._probe is not None:
            await asyncio.to_thread(self._probe.close)
        self._threads.shutdown(wait=False, cancel_futures=True)

    # Everything below runs in a thread.

    def _publish(self, records: Sequence[KafkaRecord]) -> list[str | None]:
        producer = self._open()
        try:
            futures = [
                producer.send(record.topic, value=record.value, key=record.key, headers=list(record.headers))
                for record in records
            ]
        except KafkaError as error:
            self._drop(producer)
            raise EngineDown("kafka", f"Kafka takes nothing ({type(error).__name__})") from error
        until = time.monotonic() + self._timeout_s
        outcomes = [_outcome(future, until - time.monotonic()) for future in futures]
        failures = [outcome for outcome in outcomes if outcome is not None]
        if failures:
            self._drop(producer)
        if len(failures) == len(records):
            raise EngineDown("kafka", f"Kafka acknowledged nothing ({failures[0]})")
        return outcomes

    def _open(self) -> Any:
        with self._opening:
            if self._producer is None:
                self._make_topics()
                self._producer = self._make_producer()
            return self._producer

    def _ask(self) -> None:
        with self._probing:
            probe, self._probe = self._probe or KafkaTopics(self._bootstrap, PING_TIMEOUT_S), None
            probe.topic_id(EVENT_TOPICS[0])
            self._probe = probe  # only one that answered is asked again

    def _make_topics(self) -> None:
        topics = KafkaTopics(self._bootstrap)
        try:
            topics.create(dict.fromkeys(EVENT_TOPICS, PARTITIONS) | dict.fromkeys(DEAD_LETTER_TOPICS, 1))
        finally:
            topics.close()

    def _make_producer(self) -> Any:
        timeout_ms = int(self._timeout_s * 1000)
        try:
            return KafkaProducer(
                bootstrap_servers=self._bootstrap.split(","),
                enable_idempotence=True,
                acks="all",
                linger_ms=0,
                max_block_ms=timeout_ms,
                bootstrap_timeout_ms=timeout_ms,
                request_timeout_ms=timeout_ms - 500,
                delivery_timeout_ms=timeout_ms,
                allow_auto_create_topics=False,
                metrics_enabled=False,
            )
        except KafkaError as error:
            raise EngineDown("kafka", "Kafka does not answer") from error

    def _drop(self, producer: Any) -> None:
        with self._opening:
            if producer is None or producer is not self._producer:
                return
            self._producer = None
        producer.close(timeout=0)


def _outcome(future: Any, timeout_s: float) -> str | None:
    try:
        future.get(timeout=max(timeout_s, 0.0))
    except KafkaError as error:
        return type(error).__name__
    return None
