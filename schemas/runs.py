"""Runs: every piece of work, its state, and the events people watch (the public contract's tables)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

RunKind = Literal["ingest", "remove", "answer", "turn", "approval", "sync", "wiki", "automation", "evaluate", "access"]
RunState = Literal["queued", "running", "waiting", "succeeded", "failed", "cancelled", "expired"]
ENDED_RUN_STATES: frozenset[str] = frozenset({"succeeded", "failed", "cancelled", "expired"})
TERMINAL_EVENTS: frozenset[str] = frozenset({"run.succeeded", "run.failed", "run.cancelled", "run.expired"})
TEXT_EVENTS: frozenset[str] = frozenset(
    {"sources", "token", "thinking", "answer.text", "citations", "tool.call", "tool.result"}
)
"""Events whose data came from documents: they are read again only by who may read those documents now (invariant 9)."""


class RunView(BaseModel):
    """A run as its user sees it."""

    id: str
    kind: RunKind
    state: RunState
    waiting_for: str | None
    actor: str | None
    workflow_id: str
    parent_id: str | None
    started_at: datetime | None
    ended_at: datetime | None
    error: dict[str, Any] | None
    usage: dict[str, Any] | None


class RunEventDraft(BaseModel):
    """An event about to be written; `data` is JSON: an object, or for `sources` and `citations` a list."""

    type: str
    data: Any = Field(default_factory=dict)


class RunEvent(BaseModel):
    """`id` is `<epoch>.<seq>`. `seq` grows by one over the whole run, so it alone orders and resumes."""

    run_id: str
    epoch: int
    seq: int
    type: str
    at: datetime
    data: Any

    @property
    def id(self) -> str:
        return f"{self.epoch}.{self.seq}"


class RunEnd(BaseModel):
    """How a run ended; `error` only when it failed."""

    state: Literal["succeeded", "failed", "cancelled", "expired"]
    error: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None
