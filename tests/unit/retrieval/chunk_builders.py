"""Chunks cut out of a text, so that every offset in a test is a true one."""

from __future__ import annotations

from typing import Any

from schemas.passages import PassageChunk
from services.retrieval.diversify import ScoredChunk


def chunks_of(text: str, pieces: list[str], document_id: str = "d1", **fields: Any) -> list[PassageChunk]:
    """Each piece as a chunk at its place in the text, in order; ordinals from 0."""
    chunks, position = [], 0
    for ordinal, piece in enumerate(pieces):
        start = text.index(piece, position)
        position = start + 1
        chunks.append(
            PassageChunk(
                chunk_id=f"{document_id}-c{ordinal}", document_id=document_id, document_version=1, ordinal=ordinal,
                title=f"Title of {document_id}", text=piece, start=start, end=start + len(piece), **fields,
            )
        )  # fmt: skip
    return chunks


def hit(chunk: PassageChunk, score: float = 1.0) -> ScoredChunk:
    return ScoredChunk(chunk, score)
