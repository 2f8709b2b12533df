"""Tools `remember`, `recall` and `forget`: the memory of the person the agent acts for, and of nobody else."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from schemas.memory import MemoryDraft, MemoryKind
from schemas.tools import ToolOutcome, ToolSpec
from services.agents.memories import Memories
from services.agents.tool import About, CallContext, ToolFailed, Unasked, schema_of


class RememberArguments(BaseModel):
    """What the model sends."""

    text: str = Field(min_length=1, max_length=2_000, description="one sentence about the person or their work")
    kind: MemoryKind = "fact"


class RecallArguments(BaseModel):
    """What the model sends."""

    query: str = Field(min_length=1, max_length=8_000)


class ForgetArguments(BaseModel):
    """What the model sends."""

    memory_id: str = Field(min_length=1, max_length=200)


class RememberTool:
    """A proposal that its person can change and delete. Saying the same again changes nothing."""

    spec = ToolSpec(
        name="remember",
        description="Remembers something about the person for later conversations, when they want it remembered.",
        parameters=schema_of(RememberArguments),
        risk="read",
    )

    def __init__(self, memories: Memories) -> None:
        self._memories = memories

    async def about(self, context: CallContext, arguments: dict[str, Any]) -> About:
        return About(preview=str(arguments["text"]))

    async def call(self, context: CallContext, arguments: dict[str, Any]) -> ToolOutcome:
        if context.incognito:
            raise ToolFailed("This conversation is incognito: nothing of it is remembered.")
        draft = MemoryDraft.model_validate(arguments)
        kept = await self._memories.add(context.actor, draft, "proposed", context.run_id)
        return ToolOutcome(text=f"Remembered as {kept.id}.", summary="remembered", effect="done")


class RecallTool(Unasked):
    """The best few for a question."""

    spec = ToolSpec(
        name="recall",
        description="Looks up what is remembered about the person.",
        parameters=schema_of(RecallArguments),
        risk="read",
        quick=True,
    )

    def __init__(self, memories: Memories) -> None:
        self._memories = memories

    async def call(self, context: CallContext, arguments: dict[str, Any]) -> ToolOutcome:
        found = await self._memories.recall(context.actor, str(arguments["query"]))
        lines = [f"{row['id']} · {row['kind']} · {row['text']}" for row in found]
        used = await self._memories.sources_of(context.actor, found)
        text = "\n".join(lines) or "Nothing is remembered."
        return ToolOutcome(text=text, summary=f"{len(found)} memories", used=used)


class ForgetTool:
    """For when the person wants something forgotten."""

    spec = ToolSpec(
        name="forget",
        description="Forgets one memory, by its id.",
        parameters=schema_of(ForgetArguments),
        risk="write",
    )

    def __init__(self, memories: Memories) -> None:
        self._memories = memories

    async def about(self, context: CallContext, arguments: dict[str, Any]) -> About:
        return About(preview=str(arguments["memory_id"]))

    async def call(self, context: CallContext, arguments: dict[str, Any]) -> ToolOutcome:
        await self._memories.remove(context.actor, str(arguments["memory_id"]))
        return ToolOutcome(text="Forgotten.", summary="forgotten", effect="done")
