"""Delivers outbox rows, in order per (destination, stream) and under a lock per (destination, stream) (invariant 3)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import get_args

from schemas.domain_events import Topic
from schemas.errors import EngineDown, TransientFailure
from services.events import cloud_event
from services.events.backoff import KeyedBackoff
from services.events.publisher import Publisher
from services.events.temporal_delivery import Busy, TemporalDelivery, Workflows
from services.stores import outbox_store
from services.stores.database import Database, Transaction
from services.stores.outbox_store import OutboxRow
from services.stores.runs_store import TEMPORAL

TOPICS: tuple[str, ...] = get_args(Topic)
DESTINATIONS: tuple[str, ...] = (TEMPORAL, *TOPICS)
TEMPORAL_STREAMS_AT_ONCE = 8
HEAD_ROWS = 20

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Delivered:
    """What one look at a destination led to. `again`: there is more to do now. `wait_s`: something is due then."""

    rows: int
    again: bool
    wait_s: float | None = None


class OutboxDelivery:
    """Any number may work on one database: who holds a stream's lock delivers it, the others pass it by."""

    def __init__(
        self,
        database: Database,
        temporal: Workflows,
        publisher: Publisher,
        *,
        batch: int = 500,
        failpoint: Callable[[str], None] = lambda name: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` gives seconds and only measures how long a stream is left alone after a conflict."""
        self._database = database
        self._temporal = TemporalDelivery(database, temporal, failpoint)
        self._publisher = publisher
        self._batch = batch
        self._clock = clock
        self._postponed = KeyedBackoff()

    async def deliver_head(self, destination: str, stream: str) -> None:
        """Delivers a stream at once, for the request that has just written to it. Temporal only; never raises.

        Whatever goes wrong here is the relay's to put right.
        """
        if destination != TEMPORAL:
            return
        try:
            await self._deliver_to_temporal(stream)
        except (EngineDown, TransientFailure) as failure:
            logger.info("%s is left to the relay: %s", stream, failure)
        except Exception:
            logger.exception("%s is left to the relay", stream)

    async def deliver_batch(self, destination: str) -> Delivered:
        """Delivers what is due. Raises EngineDown when the destination, or Postgres, does not answer."""
        if destination == TEMPORAL:
            return await self._deliver_temporal_batch()
        return await self._deliver_kafka_batch(destination)

    # Temporal: one transaction per stream, some streams side by side

    async def _deliver_temporal_batch(self) -> Delivered:
        now_s = self._clock()
        async with self._database.every_tenant("the relay starts and signals the workflows of all tenants") as reading:
            skipped = self._postponed.waiting(now_s)
            streams = await outbox_store.due_streams(reading, TEMPORAL, self._batch, skipped)
        pending = deque(streams)
        workers = [self._work_off(pending) for _ in range(TEMPORAL_STREAMS_AT_ONCE)]
        outcomes = await asyncio.gather(*workers, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        rows = sum(outcome for outcome in outcomes if isinstance(outcome, int))
        return Delivered(rows, again=rows > 0, wait_s=self._postponed.next_due_s(self._clock()))

    async def _work_off(self, pending: deque[str]) -> int:
        """One of the workers on a shared queue; a failure empties it, since the others would fail like this one."""
        delivered = 0
        while pending:
            try:
                delivered += await self._deliver_to_temporal(pending.popleft())
            except BaseException:
                pending.clear()
                raise
        return delivered

    async def _deliver_to_temporal(self, stream: str) -> int:
        """Rows delivered; 0 also when somebody else holds the stream, or when it has to wait and is postponed."""
        delivered = 0
        async with self._database.every_tenant("an outbox row is found by its stream alone") as transaction:
            if not await outbox_store.lock_streams(transaction, TEMPORAL, [stream]):
                return 0
            for row in await outbox_store.unsent(transaction, TEMPORAL, [stream], HEAD_ROWS):
                try:
                    await self._temporal.deliver(transaction, row)
                except Busy as busy:
                    await outbox_store.count_try(transaction, row.id, str(busy))
                    self._postponed.postpone(stream, self._clock())
                    return delivered
                delivered += 1
        self._postponed.forget(stream)
        return delivered

    # Kafka: one transaction locks many streams, produces all, waits for the acknowledgements and marks

    async def _deliver_kafka_batch(self, topic: str) -> Delivered:
        async with self._database.every_tenant("the relay publishes the events of all tenants") as transaction:
            due = await outbox_store.due_streams(transaction, topic, self._batch)
            streams = await outbox_store.lock_streams(transaction, topic, due)
            rows = await outbox_store.unsent(transaction, topic, streams, self._batch)
            if not rows:
                return Delivered(0, again=False)
            sent = await self._publish(transaction, rows)
            await outbox_store.mark_sent(transaction, sent)
        if len(sent) < len(rows):
            raise EngineDown("kafka", f"{len(rows) - len(sent)} of {len(rows)} records were not acknowledged")
        return Delivered(len(sent), again=len(rows) >= self._batch)  # what was written meanwhile has woken us

    async def _publish(self, transaction: Transaction, rows: Sequence[OutboxRow]) -> list[int]:
        """Ids of the rows that are sent: of each stream those before its first that was not acknowledged."""
        events = await outbox_store.events_at(transaction, [row.position for row in rows if row.position is not None])
        records = {
            row.id: cloud_event.record_of(events[row.position])
            for row in rows
            if row.position is not None and row.position in events
        }
        outcomes = await self._publisher.publish(list(records.values()))
        errors = dict(zip(records, outcomes, strict=True))
        sent: dict[str, list[int]] = defaultdict(list)
        broken: set[str] = set()
        for row in rows:
            if errors.get(row.id) is not None:
                broken.add(row.stream)
            if row.stream not in broken:
                sent[row.stream].append(row.id)
        return [row_id for ids in sent.values() for row_id in ids]
