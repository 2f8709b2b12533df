"""A turn read back from its steps: what the model said, what it called, and what that came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, Field

from schemas.passages import Passage
from schemas.tools import Spent, ToolOutcome


def think_step(iteration: int) -> str:
    return f"think:{iteration}"


def call_step(iteration: int, place: int) -> str:
    return f"call:{iteration}.{place}"


class KeptCall(BaseModel):
    """A call of a reply. `arguments` is null when what the model sent could not be read."""

    call_id: str
    tool: str
    raw: str
    arguments: dict[str, Any] | None = None


class Reply(BaseModel):
    """One reply of the model as it is kept under `think:<iteration>`. `joint` stands between it and the text before it."""

    text: str = ""
    joint: str = ""
    thinking: str = ""
    calls: list[KeptCall] = Field(default_factory=list)
    finish: str = "stop"
    final: bool = False
    stop_tools: bool = False
    withheld: bool = False
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    ms: float = 0
    plans: list[dict[str, Any]] = Field(default_factory=list)

    def spent(self) -> Spent:
        return Spent(
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cost=self.cost or 0,
            seconds=self.ms / 1000,
        )


@dataclass
class Transcript:
    """`replies` by iteration; `outcomes` by step. Passages are numbered over the whole turn, in the order of their steps."""

    replies: dict[int, Reply] = field(default_factory=dict)
    outcomes: dict[str, ToolOutcome] = field(default_factory=dict)

    @property
    def iteration(self) -> int:
        """The last one that has a reply; 0 before the first."""
        return max(self.replies, default=0)

    @property
    def text(self) -> str:
        return "".join(reply.joint + reply.text for _, reply in sorted(self.replies.items()))

    def passages(self) -> dict[str, list[Passage]]:
        """Of each step, with their numbers in this turn; background passages keep 0. A passage seen before keeps its number."""
        numbered: dict[str, list[Passage]] = {}
        known: dict[tuple[str, int, str], int] = {}
        for step in sorted(self.outcomes, key=_order):
            here = []
            for passage in self.outcomes[step].passages:
                key = (passage.document_id, passage.document_version, passage.text)
                n = known.setdefault(key, len(known) + 1) if passage.n else 0
                here.append(passage.model_copy(update={"n": n}))
            numbered[step] = here
        return numbered

    def all_passages(self) -> list[Passage]:
        by_number = {passage.n: passage for each in self.passages().values() for passage in each if passage.n}
        return [by_number[n] for n in sorted(by_number)]

    def spent(self) -> Spent:
        """By its replies, and by those of its sub-agents."""
        own = (each.spent() for each in self.replies.values())
        return sum((*own, *(outcome.spent for outcome in self.outcomes.values())), Spent())

    def calls_before(self, iteration: int) -> list[KeptCall]:
        return [call for n, reply in sorted(self.replies.items()) if n < iteration for call in reply.calls]


def read_transcript(steps: Mapping[str, Any]) -> Transcript:
    """From the stored results of a run; other steps than replies and calls are passed over."""
    transcript = Transcript()
    for step, result in steps.items():
        kind, _, place = step.partition(":")
        if kind == "think":
            transcript.replies[int(place)] = Reply.model_validate(result)
        elif kind == "call":
            transcript.outcomes[step] = ToolOutcome.model_validate(result)
    return transcript


def _order(step: str) -> tuple[int, int]:
    iteration, _, place = step.partition(":")[2].partition(".")
    return int(iteration), int(place)
