"""Which turn a session runs now: read from its messages' rows, under its lock."""

from __future__ import annotations

from dataclasses import dataclass

from services.stores import runs_store, sessions_store
from services.stores.database import Database


@dataclass(frozen=True)
class Next:
    """`adopted`: the turn had been chosen before, and may be under way."""

    run_id: str | None = None
    adopted: bool = False
    traceparent: str | None = None


class SessionQueue:
    """One turn at a time; what interrupts goes first."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def next(self, tenant: str, session_id: str) -> Next:
        async with self._database.begin(tenant) as transaction:
            session = await sessions_store.lock(transaction, session_id)
            if session is None:
                return Next()
            running = await sessions_store.running(transaction, session)
            run_id = running or await sessions_store.next_run(transaction, session_id)
            if run_id != session["running"]:
                await sessions_store.set_running(transaction, session_id, run_id)
            run = await runs_store.get(transaction, run_id) if run_id is not None else None
        if run is None:
            return Next()
        return Next(run["id"], running is not None, run["input_ref"].get("traceparent"))
