"""Search requests and results (contract: Search and answers)."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field


class SearchFilters(BaseModel):
    """Fields join by AND, values inside a field by OR; a field that is absent does not filter."""

    model_config = ConfigDict(extra="forbid")

    documents: list[str] | None = None
    tags: list[str] | None = None
    sources: list[str] | None = None
    media_types: list[str] | None = None
    updated_after: datetime | None = Field(None, description="Documents whose live version was received then or later.")
    updated_before: datetime | None = Field(None, description="Documents whose live version was received before then.")


class SearchRequest(BaseModel):
    """A query and where to look. Without spaces: all that the key can see."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"query": "How many days of leave do we have?", "space": "handbook", "limit": 5}]
        },
    )

    query: str = Field(min_length=1)
    space: str | None = None
    spaces: list[str] | None = None
    filters: SearchFilters | None = None
    limit: int = Field(10, ge=1, le=100)
    explain: bool = False


class Leg(BaseModel):
    """One way of finding: `vector` or `keyword`. A leg with `error` took no part."""

    name: str
    hits: int
    ms: float
    error: str | None = None


class SearchHit(BaseModel):
    """A chunk that the caller may read now; `text` is exactly the version's text[start:end]."""

    chunk_id: str
    document_id: str
    document_version: int
    title: str | None
    heading_path: list[str]
    page_start: int | None
    page_end: int | None
    start: int | None
    end: int | None
    text: str
    score: float
    scores: dict[str, float] | None = None


class SearchResult(BaseModel):
    """Hits, the legs that found them, and what was degraded."""

    legs: list[Leg]
    degraded: list[str]
    hits: list[SearchHit]
