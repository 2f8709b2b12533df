"""A run's recent events, shared by everyone who watches it, and each watcher's place in them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from itertools import takewhile

from schemas.runs import RunEvent

KEPT = 1_000


class RunChannel:
    """Events after `floor` up to `newest`, without a gap. `newest` is null until a watcher has read the run."""

    def __init__(self, tenant: str, run_id: str) -> None:
        self.tenant = tenant
        self.run_id = run_id
        self.watchers: set[Watcher] = set()
        self.notices = 0
        self.reader: asyncio.Task[None] | None = None
        self.floor = 0
        self.newest: int | None = None
        self._events: deque[RunEvent] = deque()

    def add(self, events: Sequence[RunEvent]) -> None:
        """Appends what was read after `newest`."""
        for event in events:
            if self.newest is None or event.seq <= self.newest:
                continue
            self._events.append(event)
            self.newest = event.seq
        while len(self._events) > KEPT:
            self.floor = self._events.popleft().seq

    def start_at(self, seq: int) -> None:
        """Everything up to `seq` has been read by someone: from here on the channel keeps up."""
        if self.newest is None:
            self.floor = self.newest = seq

    def forget(self) -> None:
        """Notices may have been lost, so nothing kept here can be called complete."""
        self._events.clear()
        self.newest = None

    def after(self, seq: int) -> list[RunEvent] | None:
        """Kept events after `seq`; null when the channel cannot say."""
        if self.newest is None or seq < self.floor:
            return None
        if seq >= self.newest:
            return []
        newer = list(takewhile(lambda event: event.seq > seq, reversed(self._events)))
        return newer[::-1]

    def wake_all(self) -> None:
        for watcher in self.watchers:
            watcher.wake()


class Watcher:
    """One stream's place: everything up to `cursor` was handed out."""

    def __init__(self, channel: RunChannel, after: int) -> None:
        self.channel = channel
        self.cursor = after
        self._trusting = True
        self._awake = asyncio.Event()

    def take(self) -> list[RunEvent] | None:
        """Kept events past the cursor, which moves; null when they must be read."""
        self._awake.clear()
        found = self.channel.after(self.cursor) if self._trusting else None
        if found:
            self.cursor = found[-1].seq
        return found

    def caught_up(self, read: Sequence[RunEvent], *, to_the_newest: bool) -> None:
        """Moves past what was read for this watcher alone; `to_the_newest`: any later event will be noticed."""
        if read:
            self.cursor = read[-1].seq
        if to_the_newest:
            self._trusting = True
            self.channel.start_at(self.cursor)

    def distrust(self) -> None:
        """The next take reads, whatever the channel keeps."""
        self._trusting = False

    def wake(self) -> None:
        self._awake.set()

    async def wait(self, timeout_s: float) -> bool:
        """True when woken, false when the time is over."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._awake.wait()
        except TimeoutError:
            return False
        return True
