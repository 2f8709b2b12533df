"""What a parser is given."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from schemas.settings import ParsingSettings
from services.documents.bounds import bound_reached


@dataclass(frozen=True)
class ParseSource:
    """One file to read. `scratch` is a folder of this parse alone; `depth` counts the containers around the file."""

    path: Path
    name: str
    media_type: str
    scratch: Path
    limits: ParsingSettings
    depth: int = 0

    @cached_property
    def data(self) -> bytes:
        """The bytes of a text format: refused before reading when they cannot fit `text_chars` (4 bytes a character)."""
        size = self.path.stat().st_size
        if size > 4 * self.limits.text_chars:
            raise bound_reached("too_large", f"{size} bytes of text", "text_chars", self.limits.text_chars)
        return self.path.read_bytes()
