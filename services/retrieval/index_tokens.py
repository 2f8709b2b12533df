"""A chunk's words as both keyword engines index them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.retrieval import tokenising
from services.retrieval.analyser import analyse


@dataclass(frozen=True)
class ChunkTokens:
    """Space-joined tokens; `exact` are the identifiers among them, kept whole."""

    title: str
    body: str
    exact: str


def chunk_tokens(title: str, heading_path: Sequence[str], context: str, text: str) -> ChunkTokens:
    """Title and headings are the title field; what is repeated for understanding (`context`) is found with the text."""
    title_tokens = analyse("\n".join([title, *heading_path]))
    body_tokens = analyse(f"{context}\n{text}" if context else text)
    identifiers = [token for token in (*title_tokens, *body_tokens) if tokenising.is_identifier(token)]
    return ChunkTokens(
        title=" ".join(title_tokens), body=" ".join(body_tokens), exact=" ".join(dict.fromkeys(identifiers))
    )
