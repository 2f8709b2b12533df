"""Writes the text of an answer or a turn to its run's stream: the first piece at once, later ones gathered."""

from __future__ import annotations

import time
from collections.abc import Callable

from schemas.runs import RunEventDraft
from services.stores import run_event_log
from services.stores.database import Database, Transaction


class TokenWriter:
    """Holds the pen of one step for one attempt; PenTaken says that a later attempt writes now."""

    def __init__(
        self,
        database: Database,
        tenant: str,
        run_id: str,
        *,
        step: str,
        attempt: str,
        rows_per_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._tenant = tenant
        self._run_id = run_id
        self._step = step
        self._attempt = attempt
        self._interval_s = 1 / rows_per_s
        self._clock = clock
        self._gathered: dict[str, str] = {}
        self._wrote_at = float("-inf")

    async def take_pen(self, transaction: Transaction, said_before: str = "") -> None:
        """`said_before`: text of the run's earlier steps. Readers who are told to forget the text so far are given it again."""
        reset = await run_event_log.take_pen(transaction, self._run_id, self._step, self._attempt)
        if reset and said_before:
            again = RunEventDraft(type="token", data={"text": said_before})
            await run_event_log.append(transaction, self._run_id, [again])

    async def write(self, text: str, type: str = "token") -> None:
        if not text:
            return
        self._gathered[type] = self._gathered.get(type, "") + text
        if self._clock() - self._wrote_at >= self._interval_s:
            await self.flush()

    async def flush(self) -> None:
        """Writes what is gathered; called once more before the end."""
        if not self._gathered:
            return
        drafts = [RunEventDraft(type=type, data={"text": text}) for type, text in self._gathered.items()]
        self._gathered = {}
        self._wrote_at = self._clock()
        async with self._database.begin(self._tenant) as transaction:
            await run_event_log.append(transaction, self._run_id, drafts, step=self._step, attempt=self._attempt)
