"""How long `perdure up` takes to its ready line, and from SIGTERM to its end."""

from __future__ import annotations

import asyncio
import shutil
import time

from tests.bench import material
from tests.bench.measuring import Bench, Measured, say
from tests.bench.served import SETTLE_S, SPACE, connected
from tests.running.processes import PerdureProcess

STOPS_BUSY = 2
"""Every second stop finds an ingest at work."""


async def measure(bench: Bench) -> Measured:
    """The slowest of an empty data directory's first start and of later ones; the slowest stop, idle or at work."""
    perdure = PerdureProcess(bench.folder / "starts")
    ready_s, stop_s = [], []
    try:
        for number in range(bench.times(6, 2)):
            started = time.perf_counter()
            await asyncio.to_thread(perdure.start)
            ready_s.append(time.perf_counter() - started)
            await _give_work(perdure, number)
            started = time.perf_counter()
            code = await asyncio.to_thread(perdure.stop)
            stop_s.append(time.perf_counter() - started)
            assert code == 0, f"exit code {code}\n{perdure.log()[-2000:]}"
            say(f"start {number}: ready after {ready_s[-1]:.1f} s, stopped within {stop_s[-1]:.1f} s")
    finally:
        await asyncio.to_thread(perdure.stop)
        shutil.rmtree(perdure.data_dir, ignore_errors=True)
    raw = {"ready_s": [round(value, 2) for value in ready_s], "stop_s": [round(value, 2) for value in stop_s]}
    return {"ready_s": round(max(ready_s), 2), "stop_s": round(max(stop_s), 2), "raw": raw}


async def _give_work(perdure: PerdureProcess, number: int) -> None:
    async with connected(perdure) as served:
        if number == 0:
            (await served.http.post("/spaces", json={"name": SPACE})).raise_for_status()
        if number % STOPS_BUSY:
            await served.upload({f"{n}.md": material.document(f"stop {number} {n}", 40) for n in range(5)})
        await asyncio.sleep(SETTLE_S)
