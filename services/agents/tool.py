"""What a tool is to the agents that call it."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from pydantic import BaseModel

from schemas.access import Actor
from schemas.errors import PermanentFailure, Problem
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
    """Whose sandbox it is: the session's, also for its sub-agents' turns."""
    spaces: list[str] | None = None
    incognito: bool = False
    tools: tuple[str, ...] = ()
    depth: int = 0
    delegations: int = 0
    """How often this turn has delegated."""
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


class Unasked:
    """For tools that there is nothing to show about before they are called."""

    async def about(self, context: CallContext, arguments: dict[str, Any]) -> About:
        return About()


@dataclass(frozen=True)
class Delegation:
    """A sub-agent's turn: its brief, and the tools it may use."""

    brief: dict[str, Any]
    tools: list[str]


WithinCommit = Callable[[Transaction], Awaitable[ToolOutcome]]
"""The effect itself, for tools that act on our own rows: it and its record are then one commit."""


class ToolFailed(Exception):
    """The call could not be done, for a reason that the model is told. Nothing has happened."""


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """What services refuse, or say will never work, is an answer to the model and no end of its turn."""
    try:
        yield
    except (Problem, PermanentFailure) as refused:
        raise ToolFailed(refused.detail) from refused


class Tool(Protocol):
    """One tool. Rights are its own to check, at the call, for the actor of the context.

    Who calls a method takes Problem and PermanentFailure for ToolFailed (`refusals`); any other Failure is an engine's.
    """

    @property
    def spec(self) -> ToolSpec: ...

    async def about(self, context: CallContext, arguments: dict[str, Any]) -> About:
        """Looked at before anybody is asked. Raises ToolFailed for what could not run anyway."""
        ...

    async def call(self, context: CallContext, arguments: dict[str, Any]) -> ToolOutcome | WithinCommit:
        """Raises ToolFailed, or a Failure of the engines it needs: then the step waits or is tried again."""
        ...


@runtime_checkable
class Delegating(Protocol):
    """A tool whose call is a turn of another agent. `call` is made when that one has ended."""

    def delegation(self, context: CallContext, arguments: dict[str, Any]) -> Delegation: ...


@runtime_checkable
class Prepares(Protocol):
    """A tool that needs something before its effect can begin. What it makes ready stays so when the call is made again."""

    async def prepare(self, context: CallContext) -> None: ...


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
