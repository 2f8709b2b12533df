"""Approvals: what is asked before a tool acts, and what came of it (contract: Agents and approvals)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.tools import Risk

ApprovalState = Literal["pending", "approved", "rejected", "expired", "cancelled", "unknown_effect"]
DecisionWord = Literal["approve", "reject", "approve_session", "mark_done", "try_again"]
STATE_OF_DECISION: dict[str, ApprovalState] = {
    "approve": "approved",
    "approve_session": "approved",
    "reject": "rejected",
}
"""Of a pending request."""
STATE_OF_VERDICT: dict[str, ApprovalState] = {"mark_done": "approved", "try_again": "approved"}
"""Of a call whose outcome is not known."""


class ApprovalView(BaseModel):
    """A request as whoever may decide it sees it. Without text when a document it came from may not be read now."""

    id: str
    run_id: str
    session_id: str | None
    tool: str
    arguments: dict[str, Any] | None
    arguments_hash: str
    risk: Risk
    reason: str | None
    preview: str | None
    state: ApprovalState
    withheld: bool = False
    requested_at: datetime
    expires_at: datetime
    decided_by: str | None
    decided_at: datetime | None
    decided_arguments: dict[str, Any] | None = None
    """What was approved in place of `arguments`."""
    feedback: str | None = None


class Decision(BaseModel):
    """What somebody decides. `arguments` replace those that were asked for; `feedback` goes to the model."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"decision": "approve"}]})

    decision: DecisionWord
    arguments: dict[str, Any] | None = None
    feedback: str | None = Field(None, max_length=10_000)


class DecisionLink(BaseModel):
    """A page at which whoever has the address decides as the user who asked for it, until `expires_at`."""

    url: str
    expires_at: datetime


class Decided(BaseModel):
    """How the request stands after a decision; `already_recorded` when the same one had been made before."""

    id: str
    state: ApprovalState
    outcome: Literal["recorded", "already_recorded"]
    run_id: str | None = None
    """Of a call that is tried again: the run that makes it."""
