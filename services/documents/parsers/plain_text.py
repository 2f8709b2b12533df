"""Plain text: paragraphs between blank lines, line ends kept."""

from __future__ import annotations

import regex

from schemas.parsed_documents import Block, ParsedDocument
from services.documents.clean_text import clean_text
from services.documents.parse_source import ParseSource
from services.documents.text_encoding import decode_text

_BLANK_LINES = regex.compile(r"\n[^\S\n]*\n\s*")


def paragraphs(text: str) -> list[Block]:
    """One block for each stretch between blank lines; `text` is clean."""
    return [Block(kind="paragraph", text=part.strip("\n")) for part in _BLANK_LINES.split(text) if part.strip()]


def parse(source: ParseSource) -> ParsedDocument:
    text, encoding = decode_text(source.data)
    return ParsedDocument(
        media_type=source.media_type, parser=f"plain_text ({encoding})", blocks=paragraphs(clean_text(text))
    )
