"""Putting chunks of one version together as one passage whose every character knows its chunk."""

from __future__ import annotations

from collections.abc import Sequence

import regex

from schemas.passages import Passage, PassageChunk, PassagePart
from services.retrieval.diversify import ScoredChunk

_UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}]")


def estimated_tokens(chunk: PassageChunk) -> int:
    """The stored count; without one, a character of an unspaced script is a token and four others are one."""
    if chunk.tokens:
        return chunk.tokens
    unspaced = len(_UNSPACED.findall(chunk.text))
    return unspaced + (len(chunk.text) - unspaced + 3) // 4


def passage_of(n: int, chunks: Sequence[PassageChunk], hits: Sequence[ScoredChunk], summary: str | None) -> Passage:
    """`chunks` are consecutive and citable. Page range and heading path are the whole stretch's and the hit's."""
    text, parts = _joined_text(chunks)
    best = max(hits, key=lambda hit: hit.score)
    pages = [page for chunk in chunks for page in (chunk.page_start, chunk.page_end) if page is not None]
    return Passage(
        n=n, document_id=best.chunk.document_id, document_version=best.chunk.document_version,
        title=best.chunk.title, text=text, score=best.score, heading_path=hits[0].chunk.heading_path,
        page_start=min(pages, default=None), page_end=max(pages, default=None), updated_at=best.chunk.updated_at,
        context=summary or chunks[0].context, parts=parts, hit_chunk_ids=[hit.chunk.chunk_id for hit in hits],
        duplicates=[duplicate for hit in hits for duplicate in hit.duplicates],
        tokens=sum(estimated_tokens(chunk) for chunk in chunks),
    )  # fmt: skip


def background_passage(hit: ScoredChunk) -> Passage:
    """A summary nothing citable is known for."""
    chunk = hit.chunk
    return Passage(
        n=0, document_id=chunk.document_id, document_version=chunk.document_version, title=chunk.title,
        text=chunk.text, score=hit.score, heading_path=chunk.heading_path, page_start=chunk.page_start,
        page_end=chunk.page_end, updated_at=chunk.updated_at, hit_chunk_ids=[chunk.chunk_id],
        tokens=estimated_tokens(chunk),
    )  # fmt: skip


def _joined_text(chunks: Sequence[PassageChunk]) -> tuple[str, list[PassagePart]]:
    text = ""
    parts: list[PassagePart] = []
    covered = None  # where in the version's text the passage has come to
    for chunk in chunks:
        if chunk.start is None or chunk.end is None:
            raise ValueError(f"chunk {chunk.chunk_id} has no place in the text")
        overlap = 0
        if covered is not None:
            overlap = max(0, covered - chunk.start)
            text += _separator(chunk.start - covered, chunk.kind)
        begin = len(text) - overlap
        text += chunk.text[overlap:]
        covered = chunk.end
        parts.append(
            PassagePart(
                passage_start=begin, passage_end=begin + len(chunk.text), document_id=chunk.document_id,
                document_version=chunk.document_version, chunk_id=chunk.chunk_id, start=chunk.start, end=chunk.end,
                page_start=chunk.page_start, page_end=chunk.page_end, context=chunk.context, kind=chunk.kind,
            )
        )  # fmt: skip
    return text, parts


def _separator(gap: int, kind: str) -> str:
    """What stood between two chunks is not stored with them: a gap of one was a space or a line's end."""
    if gap <= 0:
        return ""
    if gap == 1:
        return "\n" if kind in ("table", "code") else " "
    return "\n\n"
