"""What parsing gives and chunking takes. Offsets are Unicode code points into the canonical text (invariant 10)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

BlockKind = Literal["heading", "paragraph", "list_item", "table", "code", "quote", "image", "footnote", "page_break"]
ErrorCode = Literal[
    "empty", "encrypted", "corrupt", "unsupported", "no_text", "too_large", "too_deep", "too_many", "timeout",
    "memory", "model_unavailable", "engine_down",
]  # fmt: skip


class Warning(BaseModel):
    """Something was kept back or changed while reading; `page` counts from 1."""

    code: str
    detail: str
    page: int | None = None


class Block(BaseModel):
    """One piece of a document in reading order. A table has `rows` (its first `header_rows` are headers) and no `text`."""

    kind: BlockKind
    text: str = ""
    level: int = 0
    rows: list[list[str]] = Field(default_factory=list)
    header_rows: int = 0
    page: int | None = None
    language: str | None = None
    sheet: str | None = None


class Coverage(BaseModel):
    """How many of the file's pages gave text. Formats without pages count as one."""

    pages: int = 1
    pages_with_text: int = 1
    pages_without_text: list[int] = Field(default_factory=list)


class Member(BaseModel):
    """A file inside a container (ZIP member, mail attachment), unpacked to `file` in the parse's scratch folder."""

    path: str
    file: str
    bytes: int
    media_type: str | None = None


class ParsedDocument(BaseModel):
    """What a parser made of one file: blocks in reading order, members of a container, and what was kept back."""

    media_type: str
    parser: str
    title: str | None = None
    author: str | None = None
    created: str | None = None
    language: str | None = None
    blocks: list[Block] = Field(default_factory=list)
    members: list[Member] = Field(default_factory=list)
    warnings: list[Warning] = Field(default_factory=list)
    coverage: Coverage = Coverage()


class ParsedFile(BaseModel):
    """What is told of a parsed file; its text lies in `text_file` (UTF-8) and its CanonicalDocument in `canonical_file`."""

    media_type: str
    parser: str
    title: str | None
    blocks: int
    characters: int
    members: list[Member]
    warnings: list[Warning]
    coverage: Coverage
    text_file: str
    canonical_file: str


class PlacedBlock(BaseModel):
    """A block and where it stands: canonical text[start:end]; for tables, one span per row."""

    block: Block
    start: int
    end: int
    row_spans: list[tuple[int, int]] = Field(default_factory=list)


class CanonicalDocument(BaseModel):
    """The stored text with its blocks placed on it."""

    text: str
    title: str | None
    blocks: list[PlacedBlock]


class ChunkDraft(BaseModel):
    """A chunk before it has an id. `text` is exactly canonical text[start:end]; a summary has null offsets.

    `embedding_input` is what the model reads (title, heading path, context, text); `parent` is the enclosing
    section's span, up to `chunking.parent_tokens` tokens.
    """

    ordinal: int
    start: int | None
    end: int | None
    page_start: int | None = None
    page_end: int | None = None
    heading_path: list[str] = Field(default_factory=list)
    parent_start: int | None = None
    parent_end: int | None = None
    context: str | None = None
    kind: Literal["text", "table", "code", "summary"] = "text"
    text: str
    embedding_input: str
    tokens: int
