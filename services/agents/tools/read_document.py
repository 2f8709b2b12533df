"""Tool `read_document`: the text of a document, in citable passages."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from schemas.tools import ToolOutcome, ToolSpec, Used
from services.agents.tool import CallContext, ToolFailed, Unasked, schema_of
from services.agents.tools.scope import reached
from services.retrieval import reading
from services.stores import document_views
from services.stores.database import Database

WHOLE = 2**31 - 1


class Arguments(BaseModel):
    """What the model sends."""

    document_id: str = Field(min_length=1, max_length=200)
    start: int = Field(0, ge=0, le=WHOLE, description="first character to read")
    end: int | None = Field(None, ge=1, le=WHOLE, description="where to stop; without it, as far as fits")


class ReadDocumentTool(Unasked):
    """Reads the live version, as the caller may read it now."""

    spec = ToolSpec(
        name="read_document",
        description="Reads a document by its id, from a character on. Long ones come in parts: go on where it says.",
        parameters=schema_of(Arguments),
        risk="read",
        quick=True,
    )

    def __init__(self, database: Database, max_tokens: int) -> None:
        self._database = database
        self._max_tokens = max_tokens

    async def call(self, context: CallContext, arguments: dict[str, Any]) -> ToolOutcome:
        asked = Arguments.model_validate(arguments)
        spaces = await reached(self._database, context, None)
        async with self._database.begin(context.tenant) as transaction:
            view = await document_views.get(transaction, context.actor, asked.document_id)
            if view is None or (spaces is not None and view.space_id not in spaces):
                raise ToolFailed("There is no document with this id that can be read here.")
            if view.live_version is None:
                raise ToolFailed(f"This document has no readable version yet; it is {view.state}.")
            end = asked.end if asked.end is not None else WHOLE
            found = await reading.read(
                transaction, context.actor, asked.document_id, asked.start, end, self._max_tokens
            )
        if not found.passages:
            raise ToolFailed("There is no text in that range.")
        more = f"The text goes on: read again with start={found.goes_on_at}." if found.goes_on_at is not None else ""
        version = found.passages[0].document_version
        return ToolOutcome(
            text=more,
            summary=f"{view.title or view.external_id}, version {version}",
            passages=found.passages,
            used=[Used(document_id=view.id, version=version)],
        )
