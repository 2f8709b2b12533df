"""What a tool of the MCP server is: its words, its shapes, and a call that changes nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict

from services.access.authenticate import Caller
from services.api.state import ApiState
from services.container import Serving
from services.documents.clean_text import clean_text

Words = Annotated[str, AfterValidator(clean_text)]
"""Text that a client sent, fit for a database (invariant 10)."""


class Arguments(BaseModel):
    """What a client sends."""

    model_config = ConfigDict(extra="forbid")


A = TypeVar("A", bound=Arguments)


@dataclass(frozen=True)
class Asker:
    """Who calls, in which process."""

    state: ApiState
    container: Serving
    caller: Caller


@dataclass(frozen=True)
class Shown:
    """A result twice: for programs, and as text for a model."""

    result: BaseModel
    text: str


@dataclass(frozen=True)
class ReadTool(Generic[A]):
    """Acts for the caller, with the rights that they have at this moment; a Problem is told in its own sentence."""

    name: str
    title: str
    description: str
    arguments: type[A]
    result: type[BaseModel]
    call: Callable[[Asker, A], Awaitable[Shown]]
