"""Tool `list_documents`: what there is to read."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from schemas.tools import ToolOutcome, ToolSpec, Used
from services.agents.tool import CallContext, Unasked, schema_of
from services.agents.tools.scope import reached
from services.stores import document_views
from services.stores.database import Database

MOST = 100


class Arguments(BaseModel):
    """What the model sends."""

    space: str | None = Field(None, description="only of this space")


class ListDocumentsTool(Unasked):
    """Names and ids, newest first."""

    spec = ToolSpec(
        name="list_documents",
        description="Lists documents with their ids, newest first.",
        parameters=schema_of(Arguments),
        risk="read",
        quick=True,
    )

    def __init__(self, database: Database) -> None:
        self._database = database

    async def call(self, context: CallContext, arguments: dict[str, Any]) -> ToolOutcome:
        asked = Arguments.model_validate(arguments)
        spaces = await reached(self._database, context, [asked.space] if asked.space else None)
        found = []
        async with self._database.begin(context.tenant) as transaction:
            for space_id in spaces if spaces is not None else [None]:
                found += await document_views.newest_first(
                    transaction, context.actor, space_id=space_id, state=None, tag=None, before=None, limit=MOST
                )
        shown = sorted(found, key=lambda document: document.id, reverse=True)[:MOST]
        lines = [f"{each.id} · {each.external_id} · {each.title or '-'} · {each.state}" for each in shown]
        return ToolOutcome(
            text="\n".join(lines) or "There are no documents.",
            summary=f"{len(shown)} documents",
            used=[Used(document_id=each.id, version=each.version) for each in shown],
        )
