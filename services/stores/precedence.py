"""Lets what a person waits for go ahead of background work in one process.

One interpreter serves searches and runs ingests: with the processor full, each small transaction of an ingest that gets in
between makes a search longer. So background transactions begin only while no search or answer is on its way, or after
`longest_wait_s`, which keeps ingests moving under any number of searches.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

_someone_waits: ContextVar[bool] = ContextVar("someone_waits", default=False)


class Precedence:
    """Held by the Database of a process; belongs to one event loop."""

    def __init__(self, longest_wait_s: float) -> None:
        self._longest_wait_s = longest_wait_s
        self._ahead = 0
        self._nobody = asyncio.Event()
        self._nobody.set()

    @contextlib.contextmanager
    def ahead(self) -> Iterator[None]:
        """Background transactions wait until the block ends. For what takes some milliseconds, not for a stream."""
        with prompt():
            self._ahead += 1
            self._nobody.clear()
            try:
                yield
            finally:
                self._ahead -= 1
                if not self._ahead:
                    self._nobody.set()

    async def give_way(self) -> None:
        """Returns at once for what a person waits for."""
        if not self._ahead or _someone_waits.get():
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._longest_wait_s):
                await self._nobody.wait()


@contextlib.contextmanager
def prompt() -> Iterator[None]:
    """What is done in the block, and in tasks begun in it, gives way to nothing: a person waits for it."""
    before = _someone_waits.set(True)
    try:
        yield
    finally:
        _someone_waits.reset(before)
