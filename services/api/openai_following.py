"""Follows the run behind a request of an OpenAI client: as a stream of the protocol's own frames, or to its end."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from typing import Protocol

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from schemas.errors import Failure, Forbidden, NotFound, Problem, RateLimited, Unavailable
from schemas.runs import TERMINAL_EVENTS, RunEvent
from services.access import withholding
from services.access.authenticate import Caller
from services.api import problems
from services.api.event_stream import KEEP_ALIVE, OPENING, EventStreamResponse, RunEventStream
from services.api.openai_errors import RunFailed
from services.api.openai_outcome import Outcome
from services.api.state import ApiState
from services.container import Stream
from services.events import run_cancelling
from services.stores import run_event_log, run_views

LONGEST_WAIT_S = 570.0
"""A request that does not stream ends before OpenAI's clients give up by themselves (600 s) and send it a second time."""
LONGEST_WAIT_FOR_PEOPLE_S = 120.0
"""And before that, when somebody has to approve something first."""
_PAGE = 500
_UNKNOWN = "There is no run with this id that this key can see."


class StillRunning(RunFailed):
    """504: the request has waited long enough; the run goes on."""

    title = "The work goes on"


class Telling(Protocol):
    """Puts a run's events into a protocol's words."""

    def begin(self) -> bytes: ...
    def apply(self, event: RunEvent) -> bytes: ...
    def fail(self, problem: Problem) -> bytes: ...


@dataclass(frozen=True)
class Attended:
    """A run that a request waits for. `stops_when_left`: nobody could come back to it, so leaving asks it to stop."""

    state: ApiState
    caller: Caller
    run_id: str
    stops_when_left: bool

    @property
    def container(self) -> Stream:
        return self.state.container

    async def batches(self) -> AsyncGenerator[list[RunEvent]]:
        """The run's events as its event stream has them, to the terminal one; a Problem when it cannot come to that."""
        hub, ended = self.container.hub, False
        stream = RunEventStream(self.container.database, hub, self.caller, self.run_id, after=0)
        async with contextlib.aclosing(await stream.batches()) as batches:
            async for events in batches:
                yield events
                ended = ended or any(event.type in TERMINAL_EVENTS for event in events)
        if ended:
            return
        if hub.stopping:
            raise Unavailable("This server is stopping; the work goes on.", run_id=self.run_id, retry_after_s=5)
        raise Forbidden("This key may not read the run any more.", run_id=self.run_id)

    async def left(self) -> None:
        """The client has gone; unless it is this process that goes."""
        if not self.stops_when_left or self.container.hub.stopping:
            return
        async with self.container.database.begin(self.caller.actor.tenant) as transaction:
            await run_cancelling.cancel(transaction, self.run_id, self.caller.actor.user)


def require_slot(state: ApiState, caller: Caller) -> None:
    """RateLimited before anything is started, rather than after."""
    most = state.container.settings.limits.streams_per_key
    if state.streams_of_key[caller.key_id] >= most:
        raise RateLimited(f"This key has {most} open streams (PERDURE_LIMITS__STREAMS_PER_KEY).", retry_after_s=10)


def streamed(attended: Attended, telling: Telling) -> Response:
    return _Streamed(attended, _frames(attended, telling))


async def _frames(attended: Attended, telling: Telling) -> AsyncGenerator[bytes]:
    yield OPENING + telling.begin()
    try:
        async with contextlib.aclosing(attended.batches()) as batches:
            async for events in batches:
                yield b"".join(telling.apply(event) for event in events) or KEEP_ALIVE
    except (Problem, Failure) as error:
        yield telling.fail(problems.problem_of(error))


class _Streamed(EventStreamResponse):
    """An event stream that knows whether it ended or its client left."""

    def __init__(self, attended: Attended, frames: AsyncGenerator[bytes]) -> None:
        super().__init__(frames, attended.state, attended.caller.key_id, {"X-Run-Id": attended.run_id})
        self._attended = attended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        left = sent_whole = False

        async def watched() -> Message:
            nonlocal left
            message = await receive()
            left = left or message["type"] == "http.disconnect"
            return message

        async def counted(message: Message) -> None:
            nonlocal sent_whole
            await send(message)
            last = message["type"] == "http.response.body" and not message.get("more_body", False)
            sent_whole = sent_whole or last

        await super().__call__(scope, watched, counted)
        if left and not sent_whole:
            await self._attended.left()


async def whole(attended: Attended, request: Request) -> list[RunEvent]:
    """All events of the run, once it has ended. StillRunning when that takes too long, ClientDisconnect when nobody waits."""
    with slot(attended):
        gathering = asyncio.create_task(gather(attended))
        leaving = asyncio.create_task(_gone(request.receive))
        try:
            await asyncio.wait({gathering, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if gathering.done():
                return gathering.result()
        finally:
            for task in (gathering, leaving):
                task.cancel()
            await asyncio.gather(gathering, leaving, return_exceptions=True)
    await attended.left()
    raise ClientDisconnect


async def gather(attended: Attended) -> list[RunEvent]:
    """All events of the run, once it has ended well; RunFailed when it did not, StillRunning when that takes too long."""
    gathered: list[RunEvent] = []
    outcome = Outcome()
    loop = asyncio.get_running_loop()
    ends = loop.time() + LONGEST_WAIT_S
    people: float | None = None
    try:
        async with asyncio.timeout_at(ends) as limit, contextlib.aclosing(attended.batches()) as batches:
            async for events in batches:
                for event in events:
                    outcome.apply(event)
                gathered += events
                people = (people or loop.time() + LONGEST_WAIT_FOR_PEOPLE_S) if outcome.waiting_for else None
                limit.reschedule(min(ends, people or ends))
    except TimeoutError:
        raise _still_running(attended.run_id, outcome) from None
    return gathered


def _still_running(run_id: str, outcome: Outcome) -> StillRunning:
    read = f"Read its outcome with GET /v1/responses/resp_{run_id}; a new request would begin new work."
    for approval_id, request in outcome.waiting_for.items():
        return StillRunning(
            f"The run {run_id} waits for a person. {request} {read}",
            type="waiting_for_approval", status=504, run_id=run_id, approval_id=approval_id,
        )  # fmt: skip
    return StillRunning(
        f"The run {run_id} takes longer than a request may wait, and goes on. {read}",
        type="still_running", status=504, run_id=run_id,
    )  # fmt: skip


@contextlib.contextmanager
def slot(attended: Attended) -> Iterator[None]:
    """A waiting request counts as an open stream: it holds as much."""
    streams, key_id = attended.state.streams_of_key, attended.caller.key_id
    streams[key_id] += 1
    try:
        yield
    finally:
        streams[key_id] -= 1
        if not streams[key_id]:
            del streams[key_id]


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def stored(container: Stream, caller: Caller, run_id: str) -> list[RunEvent]:
    """The events so far, as this caller may see them now."""
    found: list[RunEvent] = []
    async with container.database.begin(caller.actor.tenant) as transaction:
        standing = await run_views.standing(transaction, caller.actor, run_id)
        if standing is None:
            raise NotFound(_UNKNOWN)
        verdict = await withholding.of_run(transaction, caller.actor, run_id, names_hidden=standing.names_hidden)
        while page := await run_event_log.after(transaction, run_id, found[-1].seq if found else 0, _PAGE):
            found += page
    return withholding.withhold(found, verdict)


def now() -> int:
    """Unix seconds, as the protocol has them."""
    return int(time.time())
