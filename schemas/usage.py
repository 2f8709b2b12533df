"""What models were asked for, as callers read it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

UsageGroup = Literal["user", "model", "kind", "run", "day"]


class UsageLine(BaseModel):
    """Sums of one user, model, kind of run, run or day. `cost` is in US dollars, of replies whose price is known."""

    name: str
    replies: int
    input_tokens: int
    output_tokens: int
    cost: float | None


class UsageReport(BaseModel):
    """Dearest first."""

    by: UsageGroup
    items: list[UsageLine]
