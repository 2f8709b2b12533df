"""One file to blocks: sniff, parse, clean, and say plainly why when that cannot be done."""

from __future__ import annotations

from pathlib import Path

from schemas.errors import PermanentFailure
from schemas.parsed_documents import Block, ParsedDocument
from schemas.settings import ParsingSettings
from services.documents.bounds import bound_reached
from services.documents.clean_text import clean_text, one_line
from services.documents.parse_source import ParseSource
from services.documents.parsers.registry import PARSERS
from services.documents.sniff import sniff


def parse_file(
    path: Path, name: str, media_type: str | None, scratch: Path, limits: ParsingSettings, depth: int = 0
) -> ParsedDocument:
    """Blocks, members, warnings and coverage of the file at `path`. Reads nothing else and no network.

    `media_type` is what the sender said, a hint. `scratch` is an existing folder that members are unpacked into;
    `depth` counts the containers around this file. Raises PermanentFailure with one of the contract's codes; a bound's
    detail names the setting that moves it.
    """
    source = ParseSource(path, name, sniff(path, name, media_type), scratch, limits, depth)
    try:
        document = PARSERS[source.media_type](source)
    except PermanentFailure:
        raise
    except MemoryError as error:
        raise bound_reached(
            "memory", f"reading {name!r} takes too much memory", "memory_mb", limits.memory_mb
        ) from error
    except RecursionError as error:
        raise PermanentFailure("too_deep", f"{name!r} is nested too deeply") from error
    except Exception as error:
        # whatever a hostile or broken file makes a parser raise is that file's end, never the worker's
        raise PermanentFailure("corrupt", f"{name!r} cannot be read: {type(error).__name__}: {error}"[:500]) from error
    _clean(document, limits)
    if not document.members and not any(_has_text(block) for block in document.blocks):
        raise PermanentFailure("no_text", f"{name!r} holds no text")
    return document


def _has_text(block: Block) -> bool:
    return bool(block.text.strip()) or any(cell.strip() for row in block.rows for cell in row)


def _clean(document: ParsedDocument, limits: ParsingSettings) -> None:
    """Clean every text in place and hold the whole to `text_chars`."""
    characters = 0
    for block in document.blocks:
        block.text = clean_text(block.text)
        block.sheet = one_line(block.sheet) if block.sheet else None
        characters += len(block.text)
        for row in block.rows:
            row[:] = map(clean_text, row)
            characters += sum(map(len, row))
        if characters > limits.text_chars:
            raise bound_reached("too_large", "the document holds too much text", "text_chars", limits.text_chars)
    for field in ("title", "author", "created", "language"):
        value = getattr(document, field)
        setattr(document, field, (one_line(value)[:1_024] or None) if value else None)
    for warning in document.warnings:
        warning.detail = one_line(warning.detail)
