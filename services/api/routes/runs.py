"""Runs: how work goes, as a row and as a stream of events."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from schemas.api_replies import RunAccepted, RunEventView
from schemas.errors import Conflict, NotFound
from schemas.runs import RunKind, RunState, RunView
from services.access import withholding
from services.access.authenticate import Caller
from services.api.authentication import KeyedRoute, Reader
from services.api.event_stream import MEDIA_TYPE, EventStreamResponse, RunEventStream, seq_of
from services.api.idempotency import OnceKey
from services.api.pagination import Page, PageRequest, Paging
from services.api.state import StreamRole, api_state
from services.container import Stream
from services.events import run_cancelling
from services.stores import idempotency_store, run_event_log, run_views
from services.stores.database import Transaction

router = APIRouter(route_class=KeyedRoute, tags=["runs"])
_UNKNOWN = "There is no run with this id that this key can see."


@router.get("/runs")
async def list_runs(
    caller: Reader, container: StreamRole, paging: Paging, kind: RunKind | None = None, state: RunState | None = None
) -> Page[RunView]:
    """Runs of this key's user, and ingests and removals in spaces they manage; newest first."""
    async with container.database.begin(caller.actor.tenant) as transaction:
        runs = await run_views.newest_first(
            transaction, caller.actor, kind=kind, state=state, before=paging.place, limit=paging.fetch
        )
    return paging.page(runs, lambda run: run.id)


@router.get("/runs/{run_id}")
async def get_run(run_id: str, caller: Reader, container: StreamRole) -> RunView:
    async with container.database.begin(caller.actor.tenant) as transaction:
        return await _visible(transaction, caller, run_id)


@router.get(
    "/runs/{run_id}/events",
    response_model=Page[RunEventView],
    responses={
        200: {
            "description": "Server-Sent Events (`id`, `event`, `data`), closed after the terminal one; "
            "with `format=json` the events so far as a list",
            "content": {MEDIA_TYPE: {"schema": {"type": "string"}}},
        }
    },
)
async def run_events(
    run_id: str,
    request: Request,
    caller: Reader,
    container: StreamRole,
    paging: Paging,
    format: Annotated[Literal["sse", "json"], Query()] = "sse",
    after: Annotated[str | None, Query(description="Only events after this id", max_length=40)] = None,
    last_event_id: Annotated[str | None, Header()] = None,
) -> Page[RunEventView] | Response:
    """What happens in the run. A stream resumes after `Last-Event-ID` (or `after`), from any process."""
    place = max(seq_of(after), seq_of(last_event_id))
    if format == "json":
        return await _listed(run_id, caller, container, paging, place)
    stream = RunEventStream(container.database, container.hub, caller, run_id, place)
    return EventStreamResponse(await stream.open(), api_state(request), caller.key_id, {})


async def _listed(
    run_id: str, caller: Caller, container: Stream, paging: PageRequest, after: int
) -> Page[RunEventView]:
    place = max(after, paging.after_number() or 0)
    async with container.database.begin(caller.actor.tenant) as transaction:
        standing = await run_views.standing(transaction, caller.actor, run_id)
        if standing is None:
            raise NotFound(_UNKNOWN)
        verdict = await withholding.of_run(transaction, caller.actor, run_id, names_hidden=standing.names_hidden)
        found = await run_event_log.after(transaction, run_id, place, paging.fetch)
    seen = [RunEventView(id=event.id, **event.model_dump()) for event in withholding.withhold(found, verdict)]
    return paging.page(seen, lambda event: event.seq)


@router.post("/runs/{run_id}/cancel", status_code=202, response_model=RunAccepted)
async def cancel_run(run_id: str, caller: Reader, container: StreamRole, once: OnceKey) -> RunAccepted | Response:
    """Asks the run to stop; one that has ended stays as it is. Removals cannot be stopped."""

    async def cancel() -> RunAccepted:
        async with container.database.begin(caller.actor.tenant) as transaction:
            run = await _visible(transaction, caller, run_id)
            if run.kind != "answer":
                caller.require("write")
            if run.kind == "remove":
                raise Conflict("A removal cannot be cancelled.", type="not_cancellable")
            await run_cancelling.cancel(transaction, run_id, caller.actor.user)
            reply = RunAccepted(run_id=run_id)
            await idempotency_store.complete(transaction, reply)
        return reply

    return await once(None, cancel)


async def _visible(transaction: Transaction, caller: Caller, run_id: str) -> RunView:
    run = await run_views.get(transaction, caller.actor, run_id)
    if run is None:
        raise NotFound(_UNKNOWN)
    return run
