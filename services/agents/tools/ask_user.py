"""Tool `ask_user`: a question to the person the agent acts for, which waits like a request for approval."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from schemas.tools import ToolOutcome, ToolSpec
from services.agents.tool import About, CallContext, ToolFailed, schema_of


class Arguments(BaseModel):
    """What the model sends."""

    question: str = Field(min_length=1, max_length=10_000)


class AskUserTool:
    """The answer is the feedback of the decision."""

    spec = ToolSpec(
        name="ask_user",
        description="Asks the person a question and waits for the answer. Only for what you cannot find out yourself.",
        parameters=schema_of(Arguments),
        risk="read",
        asks=True,
    )

    async def about(self, context: CallContext, arguments: dict[str, Any]) -> About:
        return About(preview=str(arguments["question"]))

    async def call(self, context: CallContext, arguments: dict[str, Any]) -> ToolOutcome:
        if not context.feedback:
            raise ToolFailed("They let you go on without an answer.")
        return ToolOutcome(text=f"They answered: {context.feedback}", summary="answered")
