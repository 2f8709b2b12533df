"""A session with an agent as the command line holds it: made with its first message, and what is said in it."""

from __future__ import annotations

import shlex
from typing import Any
from uuid import uuid4

from schemas.conversations import MessageMode, MessageView, SessionView
from services.cli import output
from services.cli.agents import found_agent
from services.cli.client import ApiClient, backoff, path_of
from services.cli.failures import BadUsage, Refusal, Unreachable

_TITLE_CHARS = 80
_LOOKED_THROUGH = 10_000
_AWAY = (502, 503, 504)


class Conversation:
    """`running` is the turn that was under way when the session was opened."""

    def __init__(self, client: ApiClient, agent: dict[str, Any], session: SessionView | None) -> None:
        self._client = client
        self._agent = agent
        self.session_id = session.id if session else None
        self.running = session.running if session else None

    @property
    def go_on(self) -> str:
        """The command that goes on in this session."""
        return f"perdure chat {shlex.quote(output.one_line(self._agent['name']))} --session {self.session_id}"

    def last_words(self) -> list[MessageView]:
        """The last message of the person and what was answered to it."""
        path = path_of("sessions", self.session_id or "", "messages")
        messages = [
            MessageView.model_validate(item) for item in self._client.items(path, limit=_LOOKED_THROUGH)["items"]
        ]
        asked = [place for place, message in enumerate(messages) if message.role == "user"]
        return messages[asked[-1] :] if asked else messages

    def send(self, text: str, mode: MessageMode = "enqueue") -> str:
        """The run that answers. Tried again while the server is away: a message_id counts once."""
        if self.session_id is None:
            draft = {"agent_id": self._agent["id"], "title": output.one_line(text)[:_TITLE_CHARS] or None}
            self.session_id = SessionView.model_validate(self._client.send("POST", path_of("sessions"), draft)).id
        message = {"text": text, "mode": mode, "message_id": uuid4().hex}
        path = path_of("sessions", self.session_id, "messages")
        until, pauses = self._client.now() + self._client.patience_s, backoff()
        while True:
            pause = next(pauses)
            try:
                return str(self._client.send("POST", path, message)["run_id"])
            except (Unreachable, Refusal) as failure:
                is_away = isinstance(failure, Unreachable) or failure.status in _AWAY
                if not is_away or self._client.now() + pause > until:
                    raise
            self._client.sleep(pause)


def open_conversation(client: ApiClient, named: str, session_id: str | None) -> Conversation:
    """With the agent of this id or name; in a session of it, when one is named."""
    agent = found_agent(client, named)
    if session_id is None:
        return Conversation(client, agent, None)
    session = SessionView.model_validate(client.get(path_of("sessions", session_id)))
    if session.agent_id != agent["id"]:
        other = f"Name that one (`perdure agents show {session.agent_id}`), or leave --session out."
        raise BadUsage(f"The session is with another agent than {named!r}.", other)
    return Conversation(client, agent, session)
