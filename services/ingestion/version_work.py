"""One version of one document on its way through the stages, and how its movement is told."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from schemas.runs import RunEventDraft
from services.stores import documents_store, run_event_log, runs_store
from services.stores.database import Transaction

PROGRESS_EVERY_S = 0.25


@dataclass(frozen=True)
class VersionWork:
    """What a stage is about. `beat` tells the worker that the stage is alive."""

    tenant: str
    run_id: str
    document_id: str
    version: int

    @property
    def blob_prefix(self) -> str:
        return f"{self.tenant}/documents/{self.document_id}/{self.version}"


async def enter_stage(transaction: Transaction, work: VersionWork, stage: str) -> None:
    """Writes `document.staged` once, whatever the number of attempts, and shows the stage on the run's stream.

    The run's row is locked first and the document's after it, as everywhere.
    """
    await runs_store.touch(transaction, work.run_id)
    row = await documents_store.version(transaction, work.document_id, work.version)
    if row is not None and row["stage"] != stage:
        data = {"version": work.version, "state": stage, "stage": stage}
        await documents_store.append(transaction, work.document_id, "document.staged", data, run_id=work.run_id)
        event = RunEventDraft(type="stage", data={"stage": stage, "done": 0, "total": 0, "unit": ""})
        await run_event_log.append(transaction, work.run_id, [event])
    await documents_store.set_progress(transaction, work.document_id, 0, 0, "")


class StageProgress:
    """Shows done/total of a stage, at most four times a second and always at its end."""

    def __init__(self, work: VersionWork, stage: str, unit: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._work = work
        self._stage = stage
        self._unit = unit
        self._clock = clock
        self._shown_at = float("-inf")

    async def show(self, transaction: Transaction, done: int, total: int) -> None:
        """Goes along with the transaction that did the work."""
        now = self._clock()
        if done < total and now - self._shown_at < PROGRESS_EVERY_S:
            return
        self._shown_at = now
        data = {"stage": self._stage, "done": done, "total": total, "unit": self._unit}
        await runs_store.touch(transaction, self._work.run_id)
        await documents_store.set_progress(transaction, self._work.document_id, done, total, self._unit)
        await run_event_log.append(transaction, self._work.run_id, [RunEventDraft(type="stage", data=data)])
