"""Answers and their citations (contract: Search and answers)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.search import SearchFilters


class ConversationTurn(BaseModel):
    """What was said before, by whom."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["user", "assistant"]
    text: str


class AnswerRequest(BaseModel):
    """A question, where to look, and what was said before. Without spaces: all that the key can see."""

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
    """The run to watch and the answer to read."""

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
    """An answer as its asker may see it now: `withheld` ones have no text, `stale` ones rest on an older version."""

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
