"""Facts that tests write down, and what became of them in Postgres."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from sqlalchemy import text

from schemas.domain_events import EventDraft
from schemas.settings import EventSettings
from services.events.delivery import OutboxDelivery
from services.events.publisher import Publisher
from services.events.relay import Relay
from services.events.resending import BrokerMemory
from services.gateways.temporal_gateway import WorkflowStart
from services.stores import event_log
from services.stores.database import Database

TENANT = "acme"
ACCESS_TOPIC = "perdure.access"
QUICK = EventSettings(resend_after_s=1.0, fetch_wait_ms=5)


def new_space() -> str:
    return f"space:{uuid.uuid4()}"


async def write(database: Database, stream: str, count: int = 1, *, tenant: str = TENANT) -> None:
    """So many facts in the stream, each in a transaction of its own."""
    for _ in range(count):
        async with database.begin(tenant) as transaction:
            draft = EventDraft(stream=stream, type="grant.given", data={"principal": "user:ada", "role": "reader"})
            await event_log.append(transaction, draft, actor="ada")


async def rows(database: Database, sql: str, **values: Any) -> list[dict[str, Any]]:
    async with database.every_tenant("a test looks at everything") as transaction:
        return [dict(row) for row in await transaction.all(text(sql), values)]


async def audited(database: Database) -> dict[str, list[int]]:
    """Stream versions in the audit log, per stream, in the order in which they were written."""
    found: dict[str, list[int]] = {}
    for row in await rows(database, "SELECT stream, stream_version FROM audit_log ORDER BY id"):
        found.setdefault(row["stream"], []).append(row["stream_version"])
    return found


async def undelivered(database: Database) -> int:
    counted = await rows(database, "SELECT count(*) AS count FROM outbox WHERE delivered_at IS NULL")
    return int(counted[0]["count"])


async def until(condition: Callable[[], Awaitable[bool]], within_s: float = 30) -> None:
    """Raises TimeoutError when the condition does not come true."""
    async with asyncio.timeout(within_s):
        while not await condition():
            await asyncio.sleep(0.02)


class NoTemporal:
    """For tests without runs: whatever would be started is a mistake."""

    async def start(self, start: WorkflowStart) -> None:
        raise AssertionError("nothing here starts a workflow")

    async def signal(self, workflow_id: str, signal: str, argument: Any) -> bool:
        raise AssertionError("nothing here signals a workflow")

    async def wake_session(self, tenant: str, session_id: str, actor: str | None) -> None:
        raise AssertionError("nothing here wakes a session")


@contextlib.asynccontextmanager
async def relaying(
    database: Database, publisher: Publisher, memory: BrokerMemory, settings: EventSettings = QUICK
) -> AsyncIterator[None]:
    delivery = OutboxDelivery(database, NoTemporal(), publisher, batch=settings.relay_batch)
    relay = asyncio.create_task(Relay(database, delivery, memory, settings).run())
    try:
        yield
    finally:
        relay.cancel()
        await asyncio.gather(relay, return_exceptions=True)
