"""Tool `search`: passages by meaning and by words."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from schemas.settings import RetrievalSettings
from schemas.tools import ToolOutcome, ToolSpec, Used
from services.agents.tool import CallContext, Unasked, schema_of
from services.agents.tools.scope import reached
from services.retrieval.assemble import assemble
from services.retrieval.finding import Finding
from services.stores import live_chunks
from services.stores.database import Database

SIBLING_REACH = 3


class Arguments(BaseModel):
    """What the model sends."""

    query: str = Field(min_length=1, max_length=8_000, description="what to look for, in words or as a question")
    spaces: list[str] | None = Field(None, description="only in these spaces")
    limit: int = Field(8, ge=1, le=30, description="passages at most")


class SearchTool(Unasked):
    """Finds like `POST /v1/search`, for whoever the agent acts for."""

    spec = ToolSpec(
        name="search",
        description="Searches the team's documents. Gives numbered passages that can be cited by their numbers.",
        parameters=schema_of(Arguments),
        risk="read",
        quick=True,
    )

    def __init__(self, database: Database, finding: Finding, settings: RetrievalSettings) -> None:
        self._database = database
        self._finding = finding
        self._settings = settings

    async def call(self, context: CallContext, arguments: dict[str, Any]) -> ToolOutcome:
        asked = Arguments.model_validate(arguments)
        spaces = await reached(self._database, context, asked.spaces)
        found = await self._finding.find(context.actor, asked.query, spaces, None, asked.limit)
        async with self._database.begin(context.tenant) as transaction:
            hits = [hit.chunk for hit in found.hits]
            siblings = await live_chunks.around(transaction, context.actor, hits, SIBLING_REACH)
        passages = assemble(found.hits, siblings, self._settings.model_copy(update={"passages": asked.limit}))
        versions = sorted({(passage.document_id, passage.document_version) for passage in passages})
        return ToolOutcome(
            text="" if passages else "Nothing was found.",
            summary=f"{len(passages)} passages",
            passages=passages,
            used=[Used(document_id=document, version=version) for document, version in versions],
        )
