"""One thread that writes, and one commit for all who asked within a few milliseconds (group commit).

A commit costs the same whatever it holds; sharing it is what lets many documents be indexed side by side.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


class Writer(Protocol):
    """What is shared: `commit` makes writes durable and visible to the next reader, `rollback` forgets them."""

    def commit(self) -> None: ...

    def rollback(self) -> None: ...


@dataclass(slots=True)
class _Job(Generic[T]):
    work: Callable[[], T]
    reads: bool
    done: Future[T]


class GroupCommit:
    """Runs jobs in order in its own thread and answers each after the commit that holds it.

    If a job or the commit raises, every caller of that commit gets the error and nothing of it is kept:
    jobs must therefore be safe to ask for again.
    """

    def __init__(self, writer: Writer, *, gather_s: float = 0.01, most: int = 256) -> None:
        self._writer = writer
        self._gather_s = gather_s
        self._most = most
        self._jobs: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="group-commit", daemon=True)
        self._open = threading.Lock()
        self._stopped = False

    def start(self) -> None:
        self._thread.start()

    async def write(self, work: Callable[[], T], *, reads: bool = False) -> T:
        """`reads`: the work looks at what was written before it, so that is committed first.

        Cancelling the caller does not take the work back once it has begun.
        """
        job = _Job(work, reads, Future[T]())
        with self._open:
            if self._stopped:
                raise RuntimeError("the group commit has stopped")
            self._jobs.put(job)
        return await asyncio.wrap_future(job.done)

    def stop(self) -> None:
        """Returns when all that was asked has been answered. Blocks."""
        with self._open:
            self._stopped = True
            self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        stopping = False
        while not stopping:
            first = self._jobs.get()
            if first is None:
                return
            batch, stopping = self._gather(first)
            self._commit([job for job in batch if job.done.set_running_or_notify_cancel()])

    def _gather(self, first: _Job[Any]) -> tuple[list[_Job[Any]], bool]:
        batch = [first]
        until = time.monotonic() + self._gather_s
        while len(batch) < self._most:
            try:
                job = self._jobs.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                break
            if job is None:
                return batch, True
            batch.append(job)
        return batch, False

    def _commit(self, batch: list[_Job[Any]]) -> None:
        if not batch:
            return
        try:
            results = []
            for position, job in enumerate(batch):
                if job.reads and position:
                    self._writer.commit()
                results.append(job.work())
            self._writer.commit()
        except Exception as error:
            self._writer.rollback()
            for job in batch:
                job.done.set_exception(error)
            return
        for job, result in zip(batch, results, strict=True):
            job.done.set_result(result)
