"""Answers and their citations (contract: Search and answers)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.search import SearchFilters


class ConversationTurn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    role: Literal["user", "assistant"]
    text: str


class AnswerRequest(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"question": "Who approves travel above 2,000 euro?", "space": "handbook"}]},
    )

    question: str = Field(min_length=1)
    space: str | None = None
    spaces: list[str] | None = None
    filters: SearchFilters | None = None
    conversation: list[ConversationTurn] = Field(default_factory=list, max_length=50)
    model: str | None = None


class AnswerStarted(BaseModel):
    run_id: str
    answer_id: str


class Citation(BaseModel):
    """`quote` is exactly the version's text[start:end] and lies inside the chunk."""

    n: int
    document_id: str
    document_version: int
    chunk_id: str
    title: str | None
    page_start: int | None
    page_end: int | None
    start: int
    end: int
    quote: str


class AnswerView(BaseModel):
    id: str
    run_id: str
    state: str
    question: str | None
    answer: str | None
    answered: bool | None
    withheld: bool
    stale: bool
    citations: list[Citation]
    usage: dict[str, Any] | None
    model: str
