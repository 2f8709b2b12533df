"""From an event's commit until the audit consumer has handled it, on an idle machine."""

from __future__ import annotations

import asyncio
import time

from services.stores import documents_store
from services.stores.database import Database
from tests.bench import material
from tests.bench.measuring import Bench, Measured, percentile, say, spread
from tests.bench.served import Served, serving

PAUSE_S = 0.25
LOOK_EVERY_S = 0.001
NEWEST = "SELECT max(stream_version) AS version FROM domain_events WHERE stream = %s"
HANDLED = "SELECT 1 FROM audit_log WHERE stream = %s AND stream_version = %s"


async def measure(bench: Bench) -> Measured:
    """Document events, one at a time, committed from here; then it is looked for every millisecond."""
    handled_ms = []
    async with serving(bench, "events") as served:
        (receipt,) = await served.ingest({"one.md": material.document("events", 2)})
        database = Database(served.perdure.info["database_url"], pool_size=1)
        try:
            for number in range(-5, bench.times(100, 20)):
                took_s = await _one_event(served, database, receipt["document_id"], number)
                if number >= 0:
                    handled_ms.append(took_s * 1_000)
                await asyncio.sleep(PAUSE_S)
        finally:
            await database.close()
    say(f"handled after {percentile(handled_ms, 0.5):.1f} ms, p95 {percentile(handled_ms, 0.95):.1f} ms")
    return {
        "event_to_handler_ms_p95": round(percentile(handled_ms, 0.95), 1),
        "raw": {"handled_ms": spread(handled_ms)},
    }


async def _one_event(served: Served, database: Database, document_id: str, number: int) -> float:
    async with database.begin("default") as transaction:
        tags = {"tags": [f"measured {number}"]}
        await documents_store.append(transaction, document_id, "document.tags_changed", tags)
    committed = time.perf_counter()
    stream = f"document:{document_id}"
    version = (await served.rows(NEWEST, stream))[0]["version"]
    while not await served.rows(HANDLED, stream, version):
        await asyncio.sleep(LOOK_EVERY_S)
    return time.perf_counter() - committed
