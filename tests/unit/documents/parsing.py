"""Short ways to parse in tests."""

from __future__ import annotations

import tempfile
from pathlib import Path

from schemas.parsed_documents import CanonicalDocument, ChunkDraft, ParsedDocument
from schemas.settings import ChunkingSettings, ParsingSettings
from services.documents.canonical_text import canonicalise
from services.documents.chunking import chunk_document
from services.documents.parse_file import parse_file
from tests.unit.documents.word_tokens import WordTokens

CASE_INPUTS = Path(__file__).parents[2] / "cases" / "inputs"
LIMITS = ParsingSettings()
CHUNKING = ChunkingSettings()


def parse_path(path: Path, name: str | None = None, limits: ParsingSettings = LIMITS, depth: int = 0) -> ParsedDocument:
    return parse_file(path, name or path.name, None, Path(tempfile.mkdtemp(prefix="perdure-test-")), limits, depth)


def parse_bytes(data: bytes, name: str, limits: ParsingSettings = LIMITS, depth: int = 0) -> ParsedDocument:
    path = Path(tempfile.mkdtemp(prefix="perdure-test-")) / "upload"
    path.write_bytes(data)
    return parse_path(path, name, limits, depth)


def parse_case(name: str, under: str | None = None) -> ParsedDocument:
    """A case's input file, under its own or another name."""
    return parse_path(CASE_INPUTS / name, under)


def text_of(document: ParsedDocument) -> str:
    return canonicalise(document).text


def chunks_of(document: ParsedDocument, name: str = "file", limits: ChunkingSettings = CHUNKING) -> list[ChunkDraft]:
    members = [member.path for member in document.members]
    return chunk_document(canonicalise(document), name, WordTokens(), limits, members)


def markdown(text: str) -> CanonicalDocument:
    return canonicalise(parse_bytes(text.encode(), "note.md"))
