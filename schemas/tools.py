"""Tools as agents use them: what one is, what calling it came to, and what a turn's workflow is told of a call."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.passages import Passage

Risk = Literal["read", "write", "destructive"]
Mode = Literal["read_only", "ask", "auto"]
Verdict = Literal["run", "ask", "deny"]
Effect = Literal["none", "done", "unknown"]


class ToolSpec(BaseModel):
    """What a model is told of a tool, and what policy needs to know of it. `parameters` is a JSON schema (2020-12).

    `idempotent`: calling it twice is like calling it once. `quick`: over within a second and reads only, so it may share the
    model call's activity. `alone`: never beside other calls of the same reply. `asks`: a question to a person, in every mode.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    description: str
    parameters: dict[str, Any]
    risk: Risk
    idempotent: bool = True
    quick: bool = False
    alone: bool = False
    asks: bool = False
    timeout_s: float = 60
    output_chars: int = 12_000


class RequestedCall(BaseModel):
    """A call as a model asked for it; `raw` is its arguments as JSON text, which may be no JSON at all."""

    call_id: str
    tool: str
    raw: str


class Used(BaseModel):
    """A document version that an outcome's text came from."""

    document_id: str
    version: int


class Spent(BaseModel):
    """What work has used. `cost` is in US dollars and counts what has a known price."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0
    seconds: float = 0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost=self.cost + other.cost,
            seconds=self.seconds + other.seconds,
        )


class ToolOutcome(BaseModel):
    """What a call came to. `text` goes to the model; passages are numbered and added to it when a prompt is built."""

    ok: bool = True
    text: str = ""
    summary: str = ""
    passages: list[Passage] = Field(default_factory=list)
    used: list[Used] = Field(default_factory=list)
    effect: Effect = "none"
    result_ref: str | None = None
    spent: Spent = Field(default_factory=Spent)


class CallPlan(BaseModel):
    """One call as the turn's workflow sees it: ids and names, no arguments.

    `step` is where its outcome will stand. With `approval_id` somebody is asked first, by the run `child_run_id`; work that is
    `delegated` is the turn `child_run_id`.
    """

    step: str
    tool: str
    quick: bool = False
    alone: bool = True
    approval_id: str | None = None
    child_run_id: str | None = None
    expires_at: str | None = None
    delegated: bool = False
