"""Stops a run's work within a second of the wish: a NOTIFY finds the task that works on it in this process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

from schemas.errors import EngineDown
from services.stores.database import Database
from services.stores.runs_store import CANCEL_CHANNEL

_LISTEN_AGAIN_S = 0.5


class CancelWatch:
    """The wish itself is a column of the run, which each activity reads first; this only makes it quick."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._tasks: dict[str, set[asyncio.Future[Any]]] = {}
        self._followed: dict[str, list[asyncio.Event]] = {}

    async def run(self) -> None:
        """Listens until cancelled; a lost connection is opened again."""
        while True:
            try:
                async for _, run_id in self._database.listen([CANCEL_CHANNEL]):
                    self.cancel(run_id)
            except EngineDown:
                await asyncio.sleep(_LISTEN_AGAIN_S)

    def cancel(self, run_id: str) -> None:
        for wished in self._followed.get(run_id, ()):
            wished.set()
        for task in self._tasks.get(run_id, ()):
            task.cancel()

    @contextlib.contextmanager
    def following(self, run_id: str) -> Iterator[asyncio.Event]:
        """Set once the wish is heard, also between two tasks of the run: who has read the column before need not again."""
        wished = asyncio.Event()
        self._followed.setdefault(run_id, []).append(wished)
        try:
            yield wished
        finally:
            self._followed[run_id].remove(wished)
            if not self._followed[run_id]:
                del self._followed[run_id]

    @contextlib.contextmanager
    def watching(self, run_id: str, task: asyncio.Future[Any]) -> Iterator[None]:
        self._tasks.setdefault(run_id, set()).add(task)
        try:
            yield
        finally:
            tasks = self._tasks[run_id]
            tasks.discard(task)
            if not tasks:
                del self._tasks[run_id]
