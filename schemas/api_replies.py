"""Small replies of the HTTP API."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field


class RunAccepted(BaseModel):
    """Work that was accepted; `GET /v1/runs/{run_id}/events` shows how it goes."""

    run_id: str = Field(examples=["01890a5d-ac96-774b-bcce-b302099a8057"])


class RunEventView(BaseModel):
    """One event of a run. `id` is what `Last-Event-ID` and `after` take."""

    id: str = Field(examples=["0.12"])
    epoch: int
    seq: int
    type: str = Field(examples=["token"])
    at: datetime
    data: dict[str, Any] | list[Any]
    """A list for `sources` and `citations`."""


class ReadersReply(BaseModel):
    """The readers as they are now."""

    readers: list[str]


class TagsReply(BaseModel):
    """The tags as they are now."""

    tags: list[str]


class Health(BaseModel):
    """`parts` only with a key."""

    status: str = Field(examples=["ready"])
    parts: list[dict[str, Any]] | None = None
