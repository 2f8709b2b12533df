"""After kill -9 of the serving process and a new start: how long until the work that was cut moves again."""

from __future__ import annotations

import asyncio
import random
import shutil
import time

from tests.bench import material
from tests.bench.measuring import Bench, Measured, percentile, say, spread
from tests.bench.served import SPACE, connected
from tests.running.processes import PerdureProcess

SECTIONS = 300
KILL_WITHIN_S = 2.0
EMBEDDING = "SELECT 1 FROM documents WHERE id = %s AND state = 'embedding' AND (progress->>'done')::int > 0"
MOVED = "SELECT extract(epoch FROM progressed_at) AS at FROM runs WHERE id = %s AND progressed_at > to_timestamp(%s)"
"""Whoever was killed has begun no transaction since, so this progress is the new process's."""


async def measure(bench: Bench) -> Measured:
    """Killed in the middle of embedding, at random moments. What moves is the run's own record of progress."""
    perdure = PerdureProcess(bench.folder / "killed")
    moved_s: list[float] = []
    rng = random.Random(7)
    try:
        await asyncio.to_thread(perdure.start)
        async with connected(perdure) as served:
            (await served.http.post("/spaces", json={"name": SPACE})).raise_for_status()
        for number in range(bench.times(12, 3)):
            moved_s.append(await _one_kill(perdure, number, rng))
            say(f"kill {number}: moves {moved_s[-1]:.2f} s after ready")
    finally:
        await asyncio.to_thread(perdure.stop)
        shutil.rmtree(perdure.data_dir, ignore_errors=True)
    raw = {"ready_to_moved_s": spread(moved_s), "each_s": [round(value, 2) for value in moved_s]}
    return {"recovery_s_p95": round(percentile(moved_s, 0.95), 2), "raw": raw}


async def _one_kill(perdure: PerdureProcess, number: int, rng: random.Random) -> float:
    """Seconds from ready to movement; 0 when it moved before the process said that it was ready."""
    async with connected(perdure) as served:
        (receipt,) = await served.upload({f"{number}.md": material.document(f"killed {number}", SECTIONS)})
        await served.until(EMBEDDING, receipt["document_id"])
        await asyncio.sleep(rng.random() * KILL_WITHIN_S)
        perdure.kill()
        killed_at = time.time()
    await asyncio.to_thread(perdure.start)
    ready_at = time.time()
    async with connected(perdure) as served:
        moved = await served.until(MOVED, receipt["run_id"], killed_at)
        await served.http.post(f"/runs/{receipt['run_id']}/cancel")
        await served.until("SELECT 1 FROM runs WHERE id = %s AND ended_at IS NOT NULL", receipt["run_id"])
    return max(0.0, float(moved[0]["at"]) - ready_at)
