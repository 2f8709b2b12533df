"""Faust's Kafka transport with a fetch wait that can be set.

Faust fixes it at 1,500 ms. The embedded broker answers a fetch only when its wait is over, so an event would be handled
a second after it was committed.
"""

from __future__ import annotations

from typing import Any

from faust.transport.drivers import aiokafka


class QuickConsumerThread(aiokafka.AIOKafkaConsumerThread):
    """The thread in which aiokafka runs."""

    def _create_worker_consumer(self, transport: Any) -> Any:
        """The driver gives no other way in: the wait is a literal in the call that makes aiokafka's consumer."""
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = transport.fetch_wait_ms
        return consumer


class QuickConsumer(aiokafka.Consumer):
    """Makes that thread; the driver names its class in a method only."""

    def _new_consumer_thread(self) -> QuickConsumerThread:
        return QuickConsumerThread(self, loop=self.loop, beacon=self.beacon)


class QuickTransport(aiokafka.Transport):
    """`fetch_wait_ms`: the longest a broker may hold back the answer to a fetch."""

    Consumer = QuickConsumer

    def __init__(self, *arguments: Any, fetch_wait_ms: int, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.fetch_wait_ms = fetch_wait_ms
