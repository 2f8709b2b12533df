"""What a tool is to the agents that call it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from pydantic import BaseModel

from schemas.access import Actor
from schemas.tools import ToolOutcome, ToolSpec
from services.stores.database import Transaction


@dataclass(frozen=True)
class CallContext:
    """Who calls, and for which step of which turn. `spaces` are those the agent is kept to; null means all its caller sees."""

    tenant: str
    run_id: str
    step: str
    actor: Actor
    session_id: str | None = None
    workspace: str = ""
    """Whose sandbox it is: the session's, also for turns below one."""
    spaces: list[str] | None = None
    incognito: bool = False
    tools: tuple[str, ...] = ()
    depth: int = 0
    handed: int = 0
    """How often this turn has handed work on."""
    child_run_id: str | None = None
    feedback: str | None = None
    """What a person said when they approved the call."""

    @property
    def key(self) -> str:
        """The effect's key (invariant 7): the same for every attempt of this step, and for nothing else."""
        return f"{self.tenant}:{self.run_id}:{self.step}"


@dataclass(frozen=True)
class About:
    """What a person is shown before they decide, and which space's roles may decide."""

    preview: str | None = None
    space_id: str | None = None


@dataclass(frozen=True)
class Handed:
    """A turn below this one: its brief, and the tools it may use."""

    brief: dict[str, Any]
    tools: list[str]


WithinCommit = Callable[[Transaction], Awaitable[ToolOutcome]]
"""The effect itself, for tools that act on our own rows: it and its record are then one commit."""


class ToolFailed(Exception):
    """The call could not be done, for a reason that the model is told. Nothing has happened."""


class Tool(Protocol):
    """One tool. Rights are its own to check, at the call, for the actor of the context."""

    @property
    def spec(self) -> ToolSpec: ...

    async def about(self, context: CallContext, arguments: dict[str, Any]) -> About:
        """Looked at before anybody is asked. Raises ToolFailed for what could not run anyway."""
        ...

    async def call(self, context: CallContext, arguments: dict[str, Any]) -> ToolOutcome | WithinCommit:
        """Raises ToolFailed, or a Failure of the engines it needs: then the step waits or is tried again."""
        ...


@runtime_checkable
class HandsOn(Protocol):
    """A tool whose call is a turn of another agent. `call` is made when that one has ended."""

    def hand(self, context: CallContext, arguments: dict[str, Any]) -> Handed: ...


@runtime_checkable
class Abandons(Protocol):
    """A tool whose work goes on elsewhere: when its call is stopped, it has to be told."""

    async def abandon(self, context: CallContext) -> None: ...


def schema_of(arguments: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments; what is not named is refused."""
    schema = arguments.model_json_schema()
    for ours in ("title", "description"):
        schema.pop(ours, None)
    for each in schema.get("properties", {}).values():
        each.pop("title", None)
    return {**schema, "additionalProperties": False}
