"""From POST cancel until the run's `run.cancelled` reaches its stream, in the middle of embedding."""

from __future__ import annotations

import time

from tests.bench import material
from tests.bench.measuring import Bench, Measured, percentile, say, spread
from tests.bench.served import Served, serving

SECTIONS = 200


async def measure(bench: Bench) -> Measured:
    cancelled_ms = []
    async with serving(bench, "cancelled") as served:
        for number in range(bench.times(20, 5)):
            cancelled_ms.append(1_000 * await _one_cancel(served, number))
            say(f"cancel {number}: {cancelled_ms[-1]:.0f} ms")
    raw = {"cancelled_ms": spread(cancelled_ms, 1)}
    return {"cancel_ms_p95": round(percentile(cancelled_ms, 0.95), 1), "raw": raw}


async def _one_cancel(served: Served, number: int) -> float:
    (receipt,) = await served.upload({f"{number}.md": material.document(f"cancel {number}", SECTIONS)})
    run_id, asked_at = receipt["run_id"], None
    async with served.events(run_id) as events:
        async for event in events:
            if asked_at is None and event.type == "stage" and event.data["stage"] == "embedding" and event.data["done"]:
                asked_at = time.perf_counter()
                (await served.http.post(f"/runs/{run_id}/cancel")).raise_for_status()
            if event.type == "run.cancelled" and asked_at is not None:
                return time.perf_counter() - asked_at
    raise AssertionError(f"run {run_id} was not cancelled")
