"""Agents: stored configuration of who acts, with which tools, within which limits (contract: Agents and approvals)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from schemas.access import SpaceRole
from schemas.tools import Mode

AgentName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
ToolName = Annotated[str, StringConstraints(min_length=1, max_length=200)]
_EXAMPLE: dict[str, Any] = {
    "name": "handbook-editor",
    "instructions": "You keep the handbook up to date. Quote what you rely on.",
    "tools": ["search", "read_document", "write_document"],
    "mode": "ask",
}


class AgentLimits(BaseModel):
    """Bounds of one turn. What is null is bounded by the settings alone. `cost` is in US dollars."""

    model_config = ConfigDict(extra="forbid")

    iterations: int = Field(20, ge=1, le=100)
    tokens: int | None = Field(None, ge=1)
    cost: float | None = Field(None, gt=0)
    wall_seconds: float | None = Field(None, gt=0)


class AgentDraft(BaseModel):
    """A new agent. Without `spaces` it works in all that its caller sees; without `approver_roles` its caller alone decides."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [_EXAMPLE]})

    name: AgentName
    instructions: str = Field("", max_length=100_000)
    model: str | None = Field(None, max_length=200)
    tools: list[ToolName] = Field(default_factory=list, max_length=200)
    mode: Mode = "ask"
    always_ask: list[ToolName] = Field(default_factory=list, max_length=200)
    limits: AgentLimits = Field(default_factory=AgentLimits)
    spaces: list[str] | None = Field(None, max_length=200)
    approver_roles: list[SpaceRole] = Field(default_factory=list, max_length=3)


class AgentView(AgentDraft):
    """An agent as it is now; `version` grows by one with every change."""

    id: str
    version: int
    owner: str
    created_at: datetime
    updated_at: datetime


class AgentConfig(BaseModel):
    """What a turn works under: the agent as it was when the turn began, kept with the turn."""

    agent_id: str
    version: int
    name: str
    instructions: str
    model: str
    tools: list[str]
    mode: Mode
    always_ask: list[str]
    limits: AgentLimits
    spaces: list[str] | None
    approver_roles: list[SpaceRole]
