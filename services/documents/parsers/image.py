"""Pictures: without text recognition there is nothing in them to index."""

from __future__ import annotations

from schemas.errors import PermanentFailure
from schemas.parsed_documents import ParsedDocument
from services.documents.parse_source import ParseSource


def parse(source: ParseSource) -> ParsedDocument:
    raise PermanentFailure("no_text", f"{source.name!r} is a picture and text recognition is not enabled")
