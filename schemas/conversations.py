"""Sessions and their messages (contract: Agents and approvals)."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.answers import Citation

MessageMode = Literal["enqueue", "steer", "interrupt", "reject"]


class SessionDraft(BaseModel):
    """A new session with an agent. An `incognito` one writes no memories."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"agent_id": "01890a5d-ac96-774b-bcce"}]})

    agent_id: str
    title: str | None = Field(None, max_length=200)
    incognito: bool = False


class ForkDraft(BaseModel):
    """A new session that begins with another's conversation up to the end of one of its turns."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"after_run_id": "01890a5d-ac96-774b-bcce-b302099a8057"}]}
    )

    after_run_id: str


class SessionView(BaseModel):
    """A session as its user sees it; `running` is the run of the turn under way."""

    id: str
    agent_id: str
    title: str | None
    incognito: bool
    forked_from: str | None
    running: str | None
    created_at: datetime


class MessageDraft(BaseModel):
    """What a person says. `mode` says what happens when a turn is under way; the same `message_id` counts once, for ever."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"text": "Update the travel policy.", "mode": "enqueue"}]}
    )

    text: str = Field(min_length=1)
    mode: MessageMode = "enqueue"
    message_id: str | None = Field(None, min_length=1, max_length=200)


class MessageAccepted(BaseModel):
    """The run that will answer this message: its own, or the running one it steers."""

    run_id: str


class MessageView(BaseModel):
    """One message. An assistant's has citations; `withheld` ones have no text, `stale` ones rest on an older version."""

    id: str
    message_id: str
    role: Literal["user", "assistant"]
    text: str | None
    mode: MessageMode | None
    run_id: str
    withheld: bool = False
    stale: bool = False
    citations: list[Citation] = Field(default_factory=list)
    created_at: datetime
    read_at: datetime | None


class ArtifactView(BaseModel):
    """A file that a run left behind; `withheld` ones have no name and cannot be read."""

    id: str
    run_id: str
    session_id: str | None
    name: str | None
    media_type: str
    bytes: int
    withheld: bool = False
    created_at: datetime
