"""Finds what was sent and has not arrived, and makes it unsent again (architecture: Events on Kafka)."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Protocol

from schemas.errors import EngineDown
from schemas.settings import EventSettings
from services.events.delivery import TOPICS
from services.stores import outbox_store
from services.stores.database import Database

logger = logging.getLogger(__name__)


class BrokerMemory(Protocol):
    """What is needed of `services/gateways/kafka_marker.py`."""

    async def has_forgotten(self) -> bool:
        """True once when the broker lost what was sent to it before. Raises EngineDown."""
        ...


class Resending:
    """One look marks what has arrived as delivered, and sends again what is overdue or was lost with its broker."""

    def __init__(self, database: Database, broker: BrokerMemory, settings: EventSettings) -> None:
        self._database = database
        self._broker = broker
        self._settings = settings
        self._lost_at: datetime | None = None

    async def look(self) -> list[str]:
        """Topics that have something to send again."""
        for topic in TOPICS:
            async with self._database.every_tenant("consumers serve all tenants") as transaction:
                await outbox_store.settle(transaction, topic)
        before_asking = await self._now()
        try:
            if await self._broker.has_forgotten():
                self._lost_at = before_asking
        except EngineDown as down:
            logger.debug("the broker does not say what it remembers: %s", down.detail)
        if self._lost_at is None:
            return [topic for topic in TOPICS if await self._resend_overdue(topic)]
        logger.warning("the broker came back empty: everything that nobody has consumed is sent again")
        for topic in TOPICS:
            await self._resend_sent_before(topic, self._lost_at)
        self._lost_at = None
        return list(TOPICS)

    async def _resend_overdue(self, topic: str) -> int:
        """Streams made unsent, at most a batch. Those that somebody is sending right now are left for later."""
        async with self._database.every_tenant("consumers serve all tenants") as transaction:
            overdue = await outbox_store.overdue_streams(
                transaction, topic, self._settings.relay_batch, self._settings.resend_after_s
            )
            locked = await outbox_store.lock_streams(transaction, topic, overdue)
            await outbox_store.unsend(transaction, topic, locked)
        if locked:
            logger.info("%s: %s streams were not consumed in time and are sent again", topic, len(locked))
        return len(locked)

    async def _now(self) -> datetime:
        async with self._database.every_tenant("a clock has no tenant") as transaction:
            return await outbox_store.clock(transaction)

    async def _resend_sent_before(self, topic: str, moment: datetime) -> None:
        """Batch by batch; what is sent meanwhile is in the new broker already."""
        found = True
        while found:
            async with self._database.every_tenant("consumers serve all tenants") as transaction:
                sent = await outbox_store.streams_sent_before(transaction, topic, self._settings.relay_batch, moment)
                locked = await outbox_store.lock_streams(transaction, topic, sent)
                await outbox_store.unsend(transaction, topic, locked)
                found = bool(locked)
