"""Documents as callers see them. Identity is (tenant, space, source, external_id)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from schemas.parsed_documents import Coverage, Warning

DocumentState = Literal[
    "received", "parsing", "chunking", "embedding", "indexing", "enriching", "ready", "failed", "cancelled",
    "superseded", "removing", "removed",
]  # fmt: skip
Stage = Literal["received", "parsing", "chunking", "embedding", "indexing", "enriching", "ready"]
Outcome = Literal["created", "updated", "unchanged", "accepted", "rejected"]
ENDED_STATES: frozenset[str] = frozenset({"ready", "failed", "cancelled", "superseded", "removing", "removed"})
UPLOAD_SOURCE = "upload"


class DocumentError(BaseModel):
    """Why the newest version failed, at which stage, and whether trying again may help."""

    code: str
    stage: str
    retryable: bool
    detail: str


class Progress(BaseModel):
    """Real units of the stage under way, say 12 of 80 chunks."""

    done: int = 0
    total: int = 0
    unit: str = ""


class Upload(BaseModel):
    """One document about to be received. Exactly one of `blob_key` and `url` is set; text arrives as a blob."""

    space_id: str
    external_id: str
    title: str | None = None
    source: str = UPLOAD_SOURCE
    parent_id: str | None = None
    blob_key: str | None = None
    url: str | None = None
    sha256: str | None = None
    bytes: int | None = None
    media_type: str | None = None
    readers: list[str] | None = None
    tags: list[str] | None = None


class Receipt(BaseModel):
    """What became of one upload."""

    document_id: str | None = None
    external_id: str
    run_id: str | None = None
    state: str | None = None
    version: int | None = None
    outcome: Outcome
    duplicate_of: str | None = None
    error: dict[str, Any] | None = None


class Receipts(BaseModel):
    """One receipt per document that was sent, in order."""

    documents: list[Receipt]


class DocumentView(BaseModel):
    """A document as a reader sees it; state, stage, warnings and error are those of its newest version."""

    id: str
    space_id: str
    parent_id: str | None
    external_id: str
    title: str | None
    state: DocumentState
    stage: str | None
    progress: Progress
    version: int
    live_version: int | None
    searchable: bool
    media_type: str | None
    bytes: int | None
    warnings: list[Warning] = Field(default_factory=list)
    coverage: Coverage | None
    error: DocumentError | None
    readers: list[str]
    tags: list[str]
    owner: str | None
    created_at: datetime
    updated_at: datetime


class ChunkView(BaseModel):
    """`text` is exactly the version's text[start:end]; summaries have null offsets and are never cited."""

    id: str
    ordinal: int
    start: int | None
    end: int | None
    page_start: int | None
    page_end: int | None
    heading_path: list[str]
    text: str
    context: str | None
    kind: str
    tokens: int


class VersionView(BaseModel):
    """One version, with the hash and size of its original bytes."""

    version: int
    state: str
    sha256: str | None
    media_type: str | None
    bytes: int | None
    created_at: datetime


class HistoryEntry(BaseModel):
    """One fact of a document's history, as the event log has it."""

    id: str
    stream_version: int
    type: str
    actor: str | None
    at: datetime
    data: dict[str, Any]
