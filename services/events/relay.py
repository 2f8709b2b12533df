"""Carries what was committed to where it must go: one task per destination, so that a dead one holds up no other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from schemas.errors import EngineDown, TransientFailure
from schemas.settings import EventSettings
from services.events.backoff import Backoff
from services.events.delivery import DESTINATIONS, TOPICS, OutboxDelivery
from services.events.resending import BrokerMemory, Resending
from services.stores.database import Database
from services.stores.event_log import OUTBOX_CHANNEL

POLL_S = 1.0
GATHER_S = 0.04
"""Batches of one topic begin this far apart at least: events that come thick and fast share one, the first after a rest waits
for nothing. Each batch costs the process that also searches five statements, however few its events."""

logger = logging.getLogger(__name__)


class Relay:
    """Runs until cancelled, over any outage of Postgres, Temporal or Kafka. Several may run at once."""

    def __init__(
        self,
        database: Database,
        delivery: OutboxDelivery,
        broker: BrokerMemory,
        settings: EventSettings,
        *,
        destinations: Sequence[str] = DESTINATIONS,
    ) -> None:
        self._database = database
        self._delivery = delivery
        self._resending = Resending(database, broker, settings)
        self._looked_at_broker = asyncio.Event()
        self._woken = {destination: asyncio.Event() for destination in destinations}

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._listen(), name="relay-listen")
            for destination in self._woken:
                tasks.create_task(self._serve(destination), name=f"relay-{destination}")
            if any(topic in self._woken for topic in TOPICS):
                tasks.create_task(self._watch_broker(), name="relay-broker")

    def wake(self, destination: str) -> None:
        if destination in self._woken:
            self._woken[destination].set()

    async def _listen(self) -> None:
        backoff = Backoff()
        while True:
            try:
                async for _, destination in self._database.listen([OUTBOX_CHANNEL]):
                    backoff.reset()
                    self.wake(destination)
            except EngineDown as down:
                logger.warning("the relay hears nothing: %s", down.detail)
            await asyncio.sleep(backoff.next_s())

    async def _serve(self, destination: str) -> None:
        backoff, down = Backoff(), False
        if destination in TOPICS:
            await self._looked_at_broker.wait()  # or what is sent now would be taken for lost with the old broker
        while True:
            self._woken[destination].clear()
            gathered = asyncio.get_running_loop().time() + GATHER_S
            try:
                delivered = await self._delivery.deliver_batch(destination)
            except Exception as error:
                if not down or not isinstance(error, EngineDown | TransientFailure):
                    logger.warning("%s waits", destination, exc_info=error)
                down = True
                await asyncio.sleep(backoff.next_s())
                continue
            if down:
                logger.info("%s goes on", destination)
            backoff, down = Backoff(), False
            if not delivered.again:
                await self._wait(destination, delivered.wait_s)
                if destination in TOPICS:
                    await asyncio.sleep(gathered - asyncio.get_running_loop().time())

    async def _wait(self, destination: str, wait_s: float | None) -> None:
        try:
            async with asyncio.timeout(POLL_S if wait_s is None else min(wait_s, POLL_S)):
                await self._woken[destination].wait()
        except TimeoutError:
            return

    async def _watch_broker(self) -> None:
        """Looks every second for what has arrived, what is overdue, and whether the broker still has what we sent."""
        while True:
            try:
                for topic in await self._resending.look():
                    self.wake(topic)
            except (EngineDown, TransientFailure) as failure:
                logger.debug("the look at the broker waits: %s", failure)
            except Exception:
                logger.exception("the look at the broker failed")
            self._looked_at_broker.set()
            await asyncio.sleep(POLL_S)
