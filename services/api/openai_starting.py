"""Starts the work behind a request of an OpenAI client: an answer, or a turn of an agent in a session made for it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from fastapi import Request
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response

from schemas.answers import AnswerRequest, AnswerStarted
from schemas.conversations import ForkDraft, MessageAccepted, MessageDraft, SessionDraft
from schemas.errors import NotFound
from schemas.openai_protocol import OpenAIRequest, ResponseRequest
from services.access.authenticate import Caller
from services.api.idempotency import Once
from services.api.openai_conversation import Conversation
from services.api.openai_errors import Unsupported
from services.api.openai_following import Attended, require_slot
from services.api.openai_models import ANSWERS, Target
from services.api.state import api_state
from services.container import Serving
from services.stores import idempotency_store, run_views, turns_store

RESPONSE_PREFIX = "resp_"
_NOT_MEANT = {"stream", "stream_options", "background"}
"""How the reply is wanted is no part of what is asked: a request may be sent again in another way under its key."""


class Starting:
    """One request's start: under its Idempotency-Key, once."""

    def __init__(self, request: Request, container: Serving, caller: Caller, once: Once) -> None:
        self._state = api_state(request)
        self._returns = "idempotency-key" in request.headers
        self._container = container
        self._caller = caller
        self._once = once

    async def start(self, asked: OpenAIRequest, target: Target, conversation: Conversation) -> Attended:
        """The run to attend. Leaving it stops it, unless the request's key lets its client come back."""
        require_slot(self._state, self._caller)
        follows = asked.previous_response_id if isinstance(asked, ResponseRequest) else None
        body = asked.model_dump(mode="json", exclude=_NOT_MEANT)

        async def act() -> AnswerStarted | MessageAccepted:
            with self._container.database.precedence.ahead():
                if target.agent_id is None:
                    return await self._ask(asked, conversation, follows)
                return await self._say(target.agent_id, conversation, follows)

        run_id = _run_of(await self._once(body, act))
        stays = self._returns or bool(isinstance(asked, ResponseRequest) and asked.background)
        return Attended(self._state, self._caller, run_id, stops_when_left=not stays)

    async def _ask(self, asked: OpenAIRequest, conversation: Conversation, follows: str | None) -> AnswerStarted:
        if follows is not None:
            raise Unsupported(
                "previous_response_id", f"{ANSWERS} keeps no conversation: send the earlier messages along."
            )
        request = AnswerRequest(
            question=conversation.question,
            space=asked.space,
            spaces=asked.spaces,
            filters=asked.filters,
            conversation=conversation.as_turns(),
        )
        return await self._container.asking.start(self._caller.actor, request)

    async def _say(self, agent_id: str, conversation: Conversation, follows: str | None) -> MessageAccepted:
        """In a new session. One that follows a response begins with that one's conversation, as it is stored."""
        self._caller.require("write")
        sessions, actor = self._container.sessions, self._caller.actor
        earlier = None if follows is None else await self._session_of(agent_id, follows)
        text = conversation.as_message(self._container.settings.agents.message_chars)
        with _not_the_reply():
            if earlier is None:
                session = await sessions.create(actor, SessionDraft(agent_id=agent_id))
            else:
                session = await sessions.fork(actor, earlier[0], ForkDraft(after_run_id=earlier[1]))
        return await sessions.send(actor, session.id, MessageDraft(text=text))

    async def _session_of(self, agent_id: str, response_id: str) -> tuple[str, str]:
        """(session, turn) of an earlier response with the same agent."""
        run_id = run_of_response(response_id)
        async with self._container.database.begin(self._caller.actor.tenant) as transaction:
            run = await run_views.get(transaction, self._caller.actor, run_id)
            turn = await turns_store.get(transaction, run_id) if run is not None else None
        if turn is None or turn["session_id"] is None:
            raise NotFound(
                f"There is no response '{response_id[:100]}' of an agent that this key can see.",
                type="previous_response_not_found", param="previous_response_id",
            )  # fmt: skip
        if turn["agent_id"] != agent_id:
            raise Unsupported("previous_response_id", "That response is another agent's; name its model.")
        return turn["session_id"], run_id


@contextlib.contextmanager
def _not_the_reply() -> Iterator[None]:
    """A service completes the request's Idempotency-Key with what it makes. Here that is only half of it."""
    token = idempotency_store.CURRENT.set(None)
    try:
        yield
    finally:
        idempotency_store.CURRENT.reset(token)


def _run_of(reply: BaseModel | Response) -> str:
    """A reply that is replayed names the same run."""
    if isinstance(reply, JSONResponse):
        known: dict[str, Any] = json.loads(bytes(reply.body))
        return str(known["run_id"])
    assert isinstance(reply, AnswerStarted | MessageAccepted)
    return reply.run_id


def run_of_response(response_id: str) -> str:
    return response_id.removeprefix(RESPONSE_PREFIX)
