"""Throws away what time has made useless."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from schemas.errors import EngineDown, TransientFailure
from schemas.settings import Settings
from services.events.blob_sweep import Blobs, BlobSweep
from services.stores import consumers_store, idempotency_store, leftovers, outbox_store, run_event_log
from services.stores.database import Database

LEADER = "housekeeping"
EVERY_S = 600.0
DELTAS_KEPT = timedelta(hours=1)
LOOK_BACK = timedelta(hours=3)
RUNS_AT_ONCE = 200

logger = logging.getLogger(__name__)


class Housekeeping:
    """Any number may run; an advisory lock makes one of them tidy up. Nothing here is needed for an answer to be right."""

    def __init__(
        self, database: Database, blobs: Blobs, settings: Settings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._database = database
        self._sweep = BlobSweep(database, blobs)
        self._settings = settings
        self._clock = clock
        self._pruned_until: datetime | None = None

    async def run(self) -> None:
        """At start and every ten minutes, until cancelled."""
        while True:
            try:
                await self.tidy_up()
            except (EngineDown, TransientFailure) as failure:
                logger.warning("housekeeping waits: %s", failure)
            await asyncio.sleep(EVERY_S)

    async def tidy_up(self) -> dict[str, int]:
        """One round; what went, by kind. Something that fails does not keep the rest from being done."""
        tasks: dict[str, Callable[[], Awaitable[int]]] = {
            "token_runs": self._prune_deltas,
            "idempotency_keys": self._drop_keys,
            "outbox_rows": self._prune_outbox,
            "consumed_rows": self._prune_consumed,
            "blobs": self._sweep_blobs,
        }
        gone: dict[str, int] = {}
        async with self._database.every_tenant("one leader tidies up for all tenants") as leader:
            if not await leader.try_lock(LEADER):
                return gone
            for kind, task in tasks.items():
                try:
                    gone[kind] = await task()
                except (EngineDown, TransientFailure) as failure:
                    logger.warning("%s are left for the next round: %s", kind, failure)
                except Exception:
                    logger.exception("%s are left for the next round", kind)
        if any(gone.values()):
            logger.info("tidied up: %s", gone)
        return gone

    async def _prune_deltas(self) -> int:
        """The first round looks at every ended run, later ones at those that came of age since."""
        pruned, found = 0, RUNS_AT_ONCE
        while found == RUNS_AT_ONCE:
            async with self._database.every_tenant("token rows of all tenants are pruned") as transaction:
                before = transaction.now - DELTAS_KEPT
                run_ids = await leftovers.runs_with_deltas(
                    transaction, ended_before=before, ended_after=self._pruned_until, limit=RUNS_AT_ONCE
                )
                await run_event_log.prune_deltas(transaction, run_ids)
            found = len(run_ids)
            pruned += found
        self._pruned_until = before - LOOK_BACK
        return pruned

    async def _drop_keys(self) -> int:
        async with self._database.every_tenant("keys of all tenants expire") as transaction:
            return await idempotency_store.drop_expired(transaction)

    async def _prune_outbox(self) -> int:
        async with self._database.every_tenant("delivered rows of all tenants are pruned") as transaction:
            kept = timedelta(hours=self._settings.events.keep_delivered_hours)
            return await outbox_store.prune_delivered(transaction, transaction.now - kept)

    async def _prune_consumed(self) -> int:
        async with self._database.every_tenant("consumers serve all tenants") as transaction:
            return await consumers_store.prune_consumed(transaction)

    async def _sweep_blobs(self) -> int:
        return await self._sweep.sweep(self._clock())
