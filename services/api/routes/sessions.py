"""Sessions with agents, and what is said in them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from schemas.conversations import (
    ForkDraft,
    MessageAccepted,
    MessageDraft,
    MessageView,
    SessionDraft,
    SessionView,
)
from services.api.authentication import KeyedRoute, Reader, Writer
from services.api.idempotency import OnceKey
from services.api.pagination import Page, Paging
from services.api.state import ServingRole

router = APIRouter(route_class=KeyedRoute, tags=["sessions"])
SessionId = Annotated[str, Path(max_length=200)]


@router.post("/sessions", status_code=201, response_model=SessionView)
async def create_session(
    wanted: SessionDraft, caller: Writer, container: ServingRole, once: OnceKey
) -> SessionView | Response:
    return await once(wanted, lambda: container.sessions.create(caller.actor, wanted))


@router.get("/sessions")
async def list_sessions(caller: Reader, container: ServingRole, paging: Paging) -> Page[SessionView]:
    """This key's user's own, newest first."""
    sessions = await container.sessions.newest(caller.actor, paging.place, paging.fetch)
    return paging.page(sessions, lambda session: session.id)


@router.get("/sessions/{session_id}")
async def get_session(session_id: SessionId, caller: Reader, container: ServingRole) -> SessionView:
    return await container.sessions.get(caller.actor, session_id)


@router.post("/sessions/{session_id}/messages", status_code=202, response_model=MessageAccepted)
async def send_message(
    session_id: SessionId, wanted: MessageDraft, caller: Writer, container: ServingRole, once: OnceKey
) -> MessageAccepted | Response:
    """Queues a turn, or steers the one under way. Follow the run's events for what comes of it."""
    return await once(wanted, lambda: container.sessions.send(caller.actor, session_id, wanted))


@router.get("/sessions/{session_id}/messages")
async def list_messages(
    session_id: SessionId, caller: Reader, container: ServingRole, paging: Paging
) -> Page[MessageView]:
    """Oldest first."""
    after = paging.after_number() or 0
    messages = await container.sessions.messages(caller.actor, session_id, after, paging.fetch)
    return paging.page(messages, lambda message: message.id)


@router.post("/sessions/{session_id}/fork", status_code=201, response_model=SessionView)
async def fork_session(
    session_id: SessionId, wanted: ForkDraft, caller: Writer, container: ServingRole, once: OnceKey
) -> SessionView | Response:
    """A new session that goes on from the end of one of this one's turns."""
    return await once(wanted, lambda: container.sessions.fork(caller.actor, session_id, wanted))
