"""What writing a text document as an agent comes to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WriteTarget:
    """Where a text would go. `text` is what stands there now; null for a new document."""

    space_id: str
    document_id: str | None
    text: str | None


@dataclass(frozen=True)
class Written:
    """What became of a text: `outcome` is the receipt's."""

    document_id: str
    version: int
    outcome: str
