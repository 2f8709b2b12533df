"""How each engine is, and what to do about it: one check per engine, and the checks that only Postgres can answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from schemas.errors import EngineDown, Failure
from schemas.identity import HealthPart
from services.container import EngineProbe, Stream
from services.stores import operations_store
from services.stores.database import Database

CHECK_TIMEOUT_S = 3.0
KEPT_S = 1.0
LAG_WARNING_S = 30.0


class Readiness:
    """The probes' last results, asked again at most once a second however often somebody looks."""

    def __init__(self, probes: Sequence[EngineProbe], clock: Callable[[], float] = time.monotonic) -> None:
        self._probes = probes
        self._clock = clock
        self._lock = asyncio.Lock()
        self._parts: list[HealthPart] = []
        self._asked_at: float | None = None

    async def parts(self) -> list[HealthPart]:
        async with self._lock:
            if self._asked_at is None or self._clock() - self._asked_at > KEPT_S:
                self._parts = list(await asyncio.gather(*(ask(probe) for probe in self._probes)))
                self._asked_at = self._clock()
            return self._parts


def is_ready(parts: Sequence[HealthPart]) -> bool:
    return not any(part.needed and part.severity == "error" for part in parts)


async def ask(probe: EngineProbe) -> HealthPart:
    """Never raises: a check that fails is what it is there to report."""
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            detail = await probe.check()
    except TimeoutError:
        return _down(probe, f"no reply within {CHECK_TIMEOUT_S:.0f} s")
    except Failure as failure:
        return _down(probe, failure.detail)
    except Exception as error:  # a probe's own fault is a finding, too
        return _down(probe, f"the check failed: {type(error).__name__}")
    return HealthPart(name=probe.name, severity="ok", detail=detail, needed=probe.needed)


async def diagnose(container: Stream) -> list[HealthPart]:
    """One part per engine, then deliveries and runs."""
    engines = await asyncio.gather(*(ask(probe) for probe in container.probes))
    return [*engines, await _deliveries(container.database), await _streams(container)]


async def _deliveries(database: Database) -> HealthPart:
    try:
        async with database.every_tenant("operators look at all deliveries") as transaction:
            lags = await operations_store.outbox_lags(transaction)
    except EngineDown as error:
        return HealthPart(name="deliveries", severity="error", detail=error.detail, remedy="Start Postgres.")
    late = [lag for lag in lags if lag.oldest_s > LAG_WARNING_S]
    if not late:
        waiting = sum(lag.rows for lag in lags)
        return HealthPart(name="deliveries", severity="ok", detail=f"{waiting} waiting, none for long")
    worst = max(late, key=lambda lag: lag.oldest_s)
    detail = f"{worst.rows} rows for {worst.destination} wait, the oldest for {worst.oldest_s:.0f} s"
    remedy = "See that a relay runs (`perdure relay`) and that this destination answers."
    return HealthPart(name="deliveries", severity="warning", detail=detail, remedy=remedy)


async def _streams(container: Stream) -> HealthPart:
    if container.hub.listening.is_set():
        return HealthPart(name="streams", severity="ok", detail=f"{container.hub.watchers} open")
    remedy = "Streams go on by polling; they are quick again once Postgres accepts a listening connection."
    return HealthPart(name="streams", severity="warning", detail="not listening for events", remedy=remedy)


def _down(probe: EngineProbe, detail: str) -> HealthPart:
    return HealthPart(name=probe.name, severity="error", detail=detail, remedy=probe.remedy, needed=probe.needed)
