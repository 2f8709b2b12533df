"""One LISTEN connection per process, fanned out to every open stream (architecture: Streaming to people).

A notice makes the hub read the run's new events once, however many people watch; each watcher has only a cursor into the
run's recent events. What a watcher cannot find there (a resume from far back, a notice that was lost while Postgres was
away) it reads for itself, at the latest every `POLL_S`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

from schemas.errors import EngineDown, TransientFailure
from schemas.runs import RunEvent
from services.events.run_channel import RunChannel, Watcher
from services.stores import run_event_log
from services.stores.database import Database
from services.stores.identity_store import ACCESS_CHANNEL
from services.stores.run_event_log import RUN_EVENTS_CHANNEL

POLL_S = 10.0

FIRST_BACKOFF_S, LONGEST_BACKOFF_S = 0.1, 5.0
GREETING_EVERY_S = 0.2
READS_AT_ONCE = 8
PAGE = 500

logger = logging.getLogger(__name__)


class RunEventHub:
    """Start it once per process; `watch` gives one person's view of one run."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._channels: dict[str, RunChannel] = {}
        self.reads = asyncio.Semaphore(READS_AT_ONCE)
        """What all streams together may ask of Postgres at once: a thousand of them wait in line, not for its pool."""
        self._access_generations: dict[str, int] = defaultdict(int)
        self._relistened = 0
        self._listener: asyncio.Task[None] | None = None
        self._greeting_channel = f"perdure_hub_{uuid4().hex}"
        self.listening = asyncio.Event()
        self.stopping = False

    async def start(self) -> None:
        if self._listener is None:
            self._listener = asyncio.create_task(self._keep_listening(), name="run-event-hub")

    async def stop(self) -> None:
        """Ends every open stream, so that a server waiting for its connections can stop."""
        self.stopping = True
        for channel in self._channels.values():
            channel.wake_all()
        readers = [channel.reader for channel in self._channels.values()]
        tasks = [task for task in (self._listener, *readers) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._listener = None

    @property
    def watchers(self) -> int:
        return sum(len(channel.watchers) for channel in self._channels.values())

    def access_generation(self, tenant: str) -> tuple[int, int]:
        """Changes whenever rights in the tenant may have changed; also after notices could have been lost."""
        return self._relistened, self._access_generations[tenant]

    @asynccontextmanager
    async def watch(self, tenant: str, run_id: str, after: int) -> AsyncIterator[Watcher]:
        """A cursor that begins after `after`. The caller has checked that the run may be read."""
        channel = self._channels.get(run_id)
        if channel is None:
            channel = self._channels[run_id] = RunChannel(tenant, run_id)
        watcher = Watcher(channel, after)
        channel.watchers.add(watcher)
        try:
            yield watcher
        finally:
            channel.watchers.discard(watcher)
            if not channel.watchers and self._channels.get(run_id) is channel:
                del self._channels[run_id]

    async def next_events(self, watcher: Watcher, *, wait_s: float | None = None) -> list[RunEvent]:
        """Events past the watcher's cursor, which moves; empty when it was woken for another reason or waited in vain.

        Raises EngineDown when they have to be read and Postgres is away: the cursor stays, ask again.
        """
        channel = watcher.channel
        found = watcher.take()
        if found is None:
            notices = channel.notices
            found = await self._read(channel, watcher.cursor)
            missed_nothing = self.listening.is_set() and notices == channel.notices
            watcher.caught_up(found, to_the_newest=missed_nothing and len(found) < PAGE)
        if found or self.stopping:
            return found
        if not await watcher.wait(POLL_S if wait_s is None else wait_s):
            watcher.distrust()
        return watcher.take() or []

    async def _read(self, channel: RunChannel, after: int) -> list[RunEvent]:
        async with self.reads, self._database.begin(channel.tenant) as transaction:
            return await run_event_log.after(transaction, channel.run_id, after, PAGE)

    async def _keep_listening(self) -> None:
        backoff_s = FIRST_BACKOFF_S
        while True:
            greeting = asyncio.create_task(self._greet())
            try:
                async for channel, payload in self._database.listen(
                    [RUN_EVENTS_CHANNEL, ACCESS_CHANNEL, self._greeting_channel]
                ):
                    backoff_s = FIRST_BACKOFF_S
                    self._hear(channel, payload)
            except EngineDown as error:
                logger.warning("the run event hub lost its connection: %s", error.detail)
            finally:
                greeting.cancel()
                self._stop_listening()
            await asyncio.sleep(backoff_s)
            backoff_s = min(backoff_s * 2, LONGEST_BACKOFF_S)

    async def _greet(self) -> None:
        """Notifies our own channel until it is heard: LISTEN says nothing when it has begun."""
        while not self.listening.is_set():
            try:
                async with self._database.every_tenant("a notice to this process alone") as transaction:
                    await transaction.notify(self._greeting_channel, "")
            except (EngineDown, TransientFailure):
                logger.debug("Postgres is away; the greeting waits")
            await asyncio.sleep(GREETING_EVERY_S)

    def _hear(self, channel: str, payload: str) -> None:
        if channel == RUN_EVENTS_CHANNEL:
            self._refresh(payload)
        elif channel == ACCESS_CHANNEL:
            self._access_generations[payload] += 1
            for each in self._channels.values():
                if each.tenant == payload:
                    each.wake_all()
        elif not self.listening.is_set():
            self._begin_listening()

    def _stop_listening(self) -> None:
        self.listening.clear()
        for channel in self._channels.values():
            channel.forget()

    def _begin_listening(self) -> None:
        """Notices before this moment may be lost: every watcher reads again and looks at its rights again."""
        self.listening.set()
        self._relistened += 1
        for channel in self._channels.values():
            channel.forget()
            channel.wake_all()

    def _refresh(self, run_id: str) -> None:
        """Reads the run's new events once; notices that come meanwhile are one more read after it."""
        channel = self._channels.get(run_id)
        if channel is None:
            return
        channel.notices += 1
        if channel.reader is None:
            channel.reader = asyncio.create_task(self._read_news(channel))

    async def _read_news(self, channel: RunChannel) -> None:
        """Nothing to do while no watcher has read the run to its end: each then reads for itself."""
        try:
            seen, found = -1, 0
            while channel.newest is not None and (seen != channel.notices or found == PAGE):
                seen = channel.notices
                news = await self._read(channel, channel.newest)
                channel.add(news)
                found = len(news)
        except (EngineDown, TransientFailure):
            channel.forget()
        finally:
            channel.reader = None
            channel.wake_all()
