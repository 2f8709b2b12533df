"""Tool `write_document`: a new version of a text document in a space."""

from __future__ import annotations

import asyncio
import difflib
from typing import Any, Protocol

from pydantic import BaseModel, Field

from schemas.access import Actor
from schemas.tools import ToolOutcome, ToolSpec, Used
from schemas.written_documents import WriteTarget, Written
from services.agents.tool import About, CallContext, WithinCommit, schema_of
from services.agents.tools.scope import reached
from services.stores.database import Database, Transaction

PREVIEW_CHARS = 20_000
COMPARED_CHARS = 400_000


class Arguments(BaseModel):
    """What the model sends."""

    space: str = Field(min_length=1, description="name or id of the space")
    external_id: str = Field(min_length=1, max_length=1_024, description="the document's name in the space")
    title: str = Field(min_length=1, max_length=1_000)
    text: str = Field(min_length=1, description="the whole new text, in Markdown")


class DocumentWriter(Protocol):
    """Writes documents (`services/ingestion/text_writing.py`). Raises Problem for what the actor may not do."""

    async def target(self, actor: Actor, space: str, external_id: str) -> WriteTarget: ...
    async def keep(self, key: str, text: str) -> None:
        """The text's bytes, under a key that is the same for every attempt."""
        ...

    async def write(
        self, transaction: Transaction, actor: Actor, key: str, space: str, external_id: str, title: str, text: str
    ) -> Written: ...


class WriteDocumentTool:
    """The version and the record of the call are one commit, so no attempt writes twice."""

    spec = ToolSpec(
        name="write_document",
        description="Writes a text document into a space, as a new document or as a new version of the one of that name.",
        parameters=schema_of(Arguments),
        risk="write",
        alone=True,
    )

    def __init__(self, database: Database, writer: DocumentWriter) -> None:
        self._database = database
        self._writer = writer

    async def about(self, context: CallContext, arguments: dict[str, Any]) -> About:
        asked = Arguments.model_validate(arguments)
        target = await self._target(context, asked)
        if target.text is None:
            preview = f"New document '{asked.external_id}':\n\n{asked.text}"
        else:
            preview = await asyncio.to_thread(_diff, target.text, asked.text, asked.external_id)
        return About(preview=_cut(preview), space_id=target.space_id)

    async def call(self, context: CallContext, arguments: dict[str, Any]) -> WithinCommit:
        asked = Arguments.model_validate(arguments)
        await self._target(context, asked)
        key = f"{context.tenant}/uploads/{context.run_id}-{context.step.replace(':', '-')}"
        await self._writer.keep(key, asked.text)

        async def write(transaction: Transaction) -> ToolOutcome:
            written = await self._writer.write(
                transaction, context.actor, key, asked.space, asked.external_id, asked.title, asked.text
            )
            said = f"Document {written.document_id}, version {written.version}: {written.outcome}."
            used = [Used(document_id=written.document_id, version=written.version)]
            return ToolOutcome(text=said, summary=said, used=used, effect="done")

        return write

    async def _target(self, context: CallContext, asked: Arguments) -> WriteTarget:
        await reached(self._database, context, [asked.space])
        return await self._writer.target(context.actor, asked.space, asked.external_id)


def _diff(before: str, after: str, name: str) -> str:
    """Comparing takes time that grows with the square of what differs, so long texts are only told by their size."""
    if len(before) + len(after) > COMPARED_CHARS:
        return f"{name}: {len(before)} characters now, {len(after)} new, which begin:\n\n{after}"
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), f"{name} now", f"{name} new", lineterm="")
    return "\n".join(lines) or "No change."


def _cut(text: str) -> str:
    return (
        text
        if len(text) <= PREVIEW_CHARS
        else f"{text[:PREVIEW_CHARS]}\n[… {len(text) - PREVIEW_CHARS} characters more]"
    )
