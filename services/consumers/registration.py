"""Which consumers there are, and since when each is owed what happens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from services.consumers.audit_log import AuditLog
from services.events.cloud_event import CloudEvent
from services.stores import consumers_store
from services.stores.database import Database, Transaction


class Consumer(Protocol):
    """Keeps something up to date. `apply` may see a redriven event a second time and must then change nothing."""

    @property
    def name(self) -> str: ...

    @property
    def topics(self) -> Sequence[str]: ...

    async def apply(self, transaction: Transaction, events: Sequence[CloudEvent]) -> None: ...


CONSUMERS: tuple[Consumer, ...] = (AuditLog(),)


async def register(database: Database, consumer: Consumer) -> Mapping[str, int]:
    """From its first registration on the consumer is owed every event; by topic the position before the first."""
    async with database.every_tenant("a consumer is registered for all tenants") as transaction:
        await consumers_store.register(transaction, consumer.name, consumer.topics)
        return await consumers_store.start_positions(transaction, consumer.name)


async def register_all(database: Database) -> None:
    """To be called before the first fact of a new installation, so that no consumer misses one."""
    for consumer in CONSUMERS:
        await register(database, consumer)
