"""What a search costs its caller while documents are ingested at full speed, against an idle machine."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import time
from collections.abc import AsyncIterator

from tests.bench import material
from tests.bench.measuring import Bench, Measured, percentile, say, spread
from tests.bench.served import Served, serving

SEARCH_EVERY_S = 0.1
SECTIONS = 20
FILES_PER_REQUEST = 10
OPEN_RUNS = 40
"""Fed whenever fewer are under way: full speed, without a queue that outlasts the measurement."""


async def measure(bench: Bench) -> Measured:
    """One search at a time, ten a second: idle, while ingesting, and idle again."""
    searches = bench.times(200, 40)
    async with serving(bench, "mixed") as served:
        texts = {f"first-{n}.md": material.document(f"mixed first {n}", SECTIONS) for n in range(bench.times(30, 10))}
        await served.ingest(texts)
        asked = list(texts.values())
        rng = random.Random(5)
        await _search(served, asked, rng, 20)
        before_ms = await _search(served, asked, rng, searches // 2)
        async with _ingesting(served):
            ingesting_ms = await _search(served, asked, rng, searches)
        await served.until("SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM runs WHERE ended_at IS NULL)")
        after_ms = await _search(served, asked, rng, searches // 2)
    idle_ms = [*before_ms, *after_ms]
    say(f"p95 {percentile(idle_ms, 0.95):.1f} ms idle, {percentile(ingesting_ms, 0.95):.1f} ms while ingesting")
    ratio = percentile(ingesting_ms, 0.95) / percentile(idle_ms, 0.95)
    raw = {"idle_ms": spread(idle_ms), "ingesting_ms": spread(ingesting_ms)}
    return {"search_p95_ingesting_vs_idle": round(ratio, 3), "raw": raw}


async def _search(served: Served, texts: list[str], rng: random.Random, count: int) -> list[float]:
    """Milliseconds each. A search that is due while another runs starts right after it."""
    taken_ms = []
    due = time.monotonic()
    for _ in range(count):
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        due = max(due + SEARCH_EVERY_S, time.monotonic())
        taken_ms.append(1_000 * await served.search(material.question(rng, rng.choice(texts))))
    return taken_ms


@contextlib.asynccontextmanager
async def _ingesting(served: Served) -> AsyncIterator[None]:
    """From the first batch under way until the block ends."""
    feeding = asyncio.create_task(_feed(served))
    try:
        await served.until("SELECT 1 FROM documents WHERE state = 'embedding'")
        yield
        assert not feeding.done(), "the feed must outlast the measurement"
    finally:
        feeding.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await feeding


async def _feed(served: Served) -> None:
    for number in itertools.count(step=FILES_PER_REQUEST):
        texts = {
            f"fed-{number + n}.md": material.document(f"mixed fed {number + n}", SECTIONS)
            for n in range(FILES_PER_REQUEST)
        }
        await served.until(
            "SELECT 1 WHERE (SELECT count(*) FROM runs WHERE ended_at IS NULL) < %s", OPEN_RUNS, within_s=120
        )
        await served.upload(texts)
