"""What happens to a record that came from Kafka (architecture: Events on Kafka).

A consumer's effect and the mark that it has had the event are one transaction. What it has had is dropped. An event whose
predecessor it has not had is left alone: the relay sends the stream again, from the first missing one. An event that
cannot be handled goes to the dead letter topic and counts as had, in that same transaction.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from schemas.errors import EngineDown
from services.consumers import registration
from services.consumers.registration import Consumer
from services.events import cloud_event
from services.events.backoff import Backoff
from services.events.cloud_event import CloudEvent, Undecodable
from services.events.dead_letter import Received, dead_letter
from services.events.publisher import Publisher
from services.stores import consumers_store
from services.stores.database import Database, Transaction

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Arrived:
    record: Received
    event: CloudEvent

    @property
    def version(self) -> tuple[str, int]:
        return self.event.subject, self.event.streamversion


class Consumption:
    """One per consumer and process; `start` first. `handle` returns when the offsets of its records may be committed."""

    def __init__(self, database: Database, consumer: Consumer, dead_letters: Publisher, tries: int) -> None:
        self._database = database
        self._consumer = consumer
        self._dead_letters = dead_letters
        self._tries = tries
        self._start_positions: Mapping[str, int] = {}

    async def start(self) -> None:
        """Registers the consumer. Raises EngineDown."""
        self._start_positions = await registration.register(self._database, self._consumer)

    async def handle(self, records: Sequence[Received]) -> None:
        """Never raises for what is wrong with a record. While Postgres is away, or Kafka for a record that can be kept
        nowhere else, it waits."""
        by_tenant: dict[str, list[_Arrived]] = defaultdict(list)
        for record in records:
            try:
                event = cloud_event.decode(record.value or b"")
            except Undecodable as error:
                await self._bury_undecodable(record, str(error))
            else:
                by_tenant[event.tenant].append(_Arrived(record, event))
        for tenant, arrived in by_tenant.items():
            await self._handle_of_tenant(tenant, arrived)

    async def _handle_of_tenant(self, tenant: str, arrived: Sequence[_Arrived]) -> None:
        """All in one transaction; if that fails, one by one, so that only what is wrong stays behind."""
        try:
            await self._consume(tenant, arrived)
        except Exception as error:
            logger.info("%s takes %s events one by one: %s", self._consumer.name, len(arrived), type(error).__name__)
            for each in arrived:
                await self._handle_one(tenant, each)

    async def _handle_one(self, tenant: str, arrived: _Arrived) -> None:
        backoff, failures = Backoff(), 0
        while True:
            try:
                await self._consume(tenant, [arrived])
                return
            except EngineDown as down:
                logger.warning("%s waits for %s", self._consumer.name, down.engine)
            except Exception as error:
                failures += 1
                logger.warning(
                    "%s failed on %s, try %s", self._consumer.name, arrived.event.id, failures, exc_info=error
                )
                if failures >= self._tries:
                    await self._give_up(tenant, arrived, type(error).__name__)
                    return
            await asyncio.sleep(backoff.next_s())

    async def _consume(self, tenant: str, arrived: Sequence[_Arrived]) -> None:
        async with self._database.begin(tenant) as transaction:
            fresh = await self._fresh(transaction, arrived)
            again = [each for each in arrived if each.record.redriven and each not in fresh]
            if not fresh and not again:
                return
            await self._consumer.apply(transaction, [each.event for each in [*fresh, *again]])
            await consumers_store.mark_consumed(transaction, self._consumer.name, [each.version for each in fresh])

    async def _fresh(self, transaction: Transaction, arrived: Sequence[_Arrived]) -> list[_Arrived]:
        """Those whose turn it is: each the next of its stream after what was had, and after those before it here."""
        starts = {each.event.subject: self._start_positions.get(each.record.topic, 0) for each in arrived}
        newest = await consumers_store.newest_versions(transaction, self._consumer.name, starts)
        fresh = []
        for each in arrived:
            stream, version = each.version
            if newest.get(stream) == version - 1:
                newest[stream] = version
                fresh.append(each)
        return fresh

    async def _give_up(self, tenant: str, arrived: _Arrived, reason: str) -> None:
        """Dead letter and mark. If either fails nothing is lost: the event is still owed, and the relay sends it again."""
        try:
            async with self._database.begin(tenant) as transaction:
                fresh = await self._fresh(transaction, [arrived])
                await consumers_store.mark_consumed(transaction, self._consumer.name, [each.version for each in fresh])
                if fresh or arrived.record.redriven:
                    await self._dead_letters.publish([dead_letter(arrived.record, self._consumer.name, reason)])
        except Exception as error:
            logger.warning("%s is left for the relay to send again", arrived.event.id, exc_info=error)

    async def _bury_undecodable(self, record: Received, reason: str) -> None:
        """Nobody can send this one again, so its partition waits until the dead letter topic has it."""
        backoff = Backoff()
        while True:
            try:
                await self._dead_letters.publish([dead_letter(record, self._consumer.name, reason)])
                return
            except EngineDown as down:
                logger.warning("an undecodable record of %s waits: %s", record.topic, down.detail)
            await asyncio.sleep(backoff.next_s())
