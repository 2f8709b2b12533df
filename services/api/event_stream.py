"""A run's events as Server-Sent Events, resumable from any process, for as long as the caller may read them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections import Counter
from collections.abc import AsyncGenerator
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from schemas.errors import EngineDown, NotFound, RateLimited, TransientFailure
from schemas.runs import TERMINAL_EVENTS, TEXT_EVENTS, RunEvent
from services.access import withholding
from services.access.authenticate import Caller
from services.access.load_access import load_access
from services.access.withholding import Verdict
from services.api.problems import Malformed
from services.api.state import ApiState
from services.events.run_event_hub import RunEventHub
from services.stores import run_views
from services.stores.database import Database
from services.stores.run_views import StreamStanding

MEDIA_TYPE = "text/event-stream"
EVENT_ID = re.compile(r"(?:\d{1,9}\.)?(\d{1,18})")
OPENING = b": open\n\n"
KEEP_ALIVE = b": waiting\n\n"
RETRY_S = 1.0
DELTAS = frozenset({"token", "thinking"})
TELLS_OF_SOURCES = (TEXT_EVENTS - DELTAS) | {"retrieval.done"}


def seq_of(event_id: str | None) -> int:
    """The place an event id names: `<epoch>.<seq>`, or a bare `<seq>`; 0 without one. Malformed for anything else."""
    if event_id is None or not event_id.strip():
        return 0
    match = EVENT_ID.fullmatch(event_id.strip()) if event_id.isascii() else None
    if match is None:
        raise Malformed("An event id has the form `<epoch>.<seq>`, as the stream gave it.", type="bad_event_id")
    return int(match.group(1))


def frame(event: RunEvent) -> bytes:
    data = json.dumps(event.data, ensure_ascii=False, separators=(",", ":"))
    return f"id: {event.id}\nevent: {event.type}\ndata: {data}\n\n".encode()


class RunEventStream:
    """Frames of one run for one caller.

    Rights are looked at when the stream opens, when access in the tenant changes, and when an event tells of new sources;
    between those, tokens pass by the last verdict. A stream that may no longer be read just ends.
    """

    def __init__(self, database: Database, hub: RunEventHub, caller: Caller, run_id: str, after: int) -> None:
        self._database = database
        self._hub = hub
        self._caller = caller
        self._run_id = run_id
        self._after = after
        self._verdict = Verdict(withheld=True)
        self._standing: StreamStanding | None = None
        self._checked_for: tuple[int, int] | None = None

    async def open(self) -> AsyncGenerator[bytes]:
        """The stream's frames. NotFound when the run is not this caller's to read."""
        return _frames(await self.batches())

    async def batches(self) -> AsyncGenerator[list[RunEvent]]:
        """The events as they come, and now and then none. NotFound when the run is not this caller's to read.

        They end with the terminal event, when the caller may not read the run any more, or when the server stops.
        """
        over = await self._look_again([], self._after)
        if self._standing is None:
            raise NotFound("There is no run with this id that this key can see.")
        self._after = min(self._after, self._standing.newest_seq)
        return self._batches(over=over)

    async def _batches(self, *, over: bool) -> AsyncGenerator[list[RunEvent]]:
        if over:
            return
        tenant = self._caller.actor.tenant
        async with self._hub.watch(tenant, self._run_id, self._after) as watcher:
            found: list[RunEvent] = []
            while not self._hub.stopping:
                try:
                    found = found or await self._hub.next_events(watcher)
                    over = await self._look_again(found, watcher.cursor)
                except (EngineDown, TransientFailure):
                    yield []
                    await asyncio.sleep(RETRY_S)
                    continue
                yield withholding.withhold(found, self._verdict)
                if over or any(event.type in TERMINAL_EVENTS for event in found):
                    return
                found = []

    async def _look_again(self, found: list[RunEvent], cursor: int) -> bool:
        """Renews the verdict where it may have changed. True when there is nothing more to come for this caller.

        When the caller may not read the run any more, the verdict hides whatever was found.
        """
        generation = self._hub.access_generation(self._caller.actor.tenant)
        heard = self._hub.listening.is_set() and generation == self._checked_for
        if heard and found and not any(event.type in TELLS_OF_SOURCES for event in found):
            return False
        actor = self._caller.actor
        async with self._hub.reads, self._database.begin(actor.tenant) as transaction:
            access = await load_access(transaction, actor)
            standing = await run_views.standing(transaction, actor, self._run_id)
            self._standing = standing
            if access is None or "read" not in access.scopes or standing is None:
                found.clear()
                return True
            self._verdict = await withholding.of_run(
                transaction, actor, self._run_id, names_hidden=standing.names_hidden
            )
        self._checked_for = generation
        return standing.end_seq is not None and cursor >= standing.end_seq


async def _frames(batches: AsyncGenerator[list[RunEvent]]) -> AsyncGenerator[bytes]:
    yield OPENING
    async with contextlib.aclosing(batches):
        async for events in batches:
            yield b"".join(frame(event) for event in events) or KEEP_ALIVE


class EventStreamResponse(Response):
    """Sends frames as they come; ends when they do, when the caller leaves, or when it takes them too slowly."""

    media_type = MEDIA_TYPE

    def __init__(self, frames: AsyncGenerator[bytes], state: ApiState, key_id: str, headers: dict[str, str]) -> None:
        always = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(None, 200, {**always, **headers})
        del self.headers["content-length"]
        self._frames = frames
        self._streams: Counter[str] = state.streams_of_key
        self._limits = state.container.settings.limits
        self._key_id = key_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._streams[self._key_id] >= self._limits.streams_per_key:
            most = self._limits.streams_per_key
            raise RateLimited(f"This key has {most} open streams (PERDURE_LIMITS__STREAMS_PER_KEY).", retry_after_s=10)
        self._streams[self._key_id] += 1
        try:
            await self._until_either_side_ends(receive, send)
        finally:
            self._streams[self._key_id] -= 1
            if not self._streams[self._key_id]:
                del self._streams[self._key_id]

    async def _until_either_side_ends(self, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        sending = asyncio.create_task(self._send_all(send))
        leaving = asyncio.create_task(_gone(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, leaving):
                task.cancel()
            results = await asyncio.gather(sending, leaving, return_exceptions=True)
        if isinstance(results[0], Exception):
            raise results[0]

    async def _send_all(self, send: Send) -> None:
        async with contextlib.aclosing(self._frames) as frames:
            async for piece in frames:
                try:
                    await self._send_in_time(send, {"type": "http.response.body", "body": piece, "more_body": True})
                except TimeoutError:
                    return  # a reader this slow holds memory for nothing; it can resume
        await self._send_in_time(send, {"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_in_time(self, send: Send, message: dict[str, Any]) -> None:
        async with asyncio.timeout(self._limits.slow_client_s):
            await send(message)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
