"""What agents remember of a person, and that person's say over it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

MemoryKind = Literal["profile", "preference", "fact", "task"]
MemorySource = Literal["explicit", "proposed"]


class MemoryDraft(BaseModel):
    """Something to remember. The person's own are explicit, an agent's are proposed."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"text": "Prefers tables.", "kind": "preference"}]}
    )

    text: str = Field(min_length=1, max_length=2_000)
    kind: MemoryKind = "fact"


class MemoryView(BaseModel):
    """One memory as its person sees it; without text when it came from a document that they may not read now."""

    id: str
    kind: MemoryKind
    text: str | None
    source: MemorySource
    confidence: float
    run_id: str | None
    withheld: bool = False
    created_at: datetime
    updated_at: datetime


class MemorySwitch(BaseModel):
    """Switched off, nothing is remembered and nothing is recalled; what was remembered stays until it is deleted."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"enabled": False}]})

    enabled: bool
