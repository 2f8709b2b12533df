"""A filter as plain conditions, so that every engine translates the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from schemas.index_records import IndexedChunk, IndexFilter

KEYWORD_FIELDS = ("tenant", "space", "document", "readers", "media_type", "source", "tags")


@dataclass(frozen=True, slots=True)
class AnyOf:
    """The field holds at least one of `values`, which are not empty."""

    field: str
    values: list[str]


@dataclass(frozen=True, slots=True)
class Between:
    """from <= field < before; null is open."""

    field: str
    start: int | None
    before: int | None


Condition = AnyOf | Between


def conditions(flt: IndexFilter) -> list[Condition]:
    """All of these must hold. The caller has already answered a filter that `matches_nothing`."""
    asked: list[tuple[str, Sequence[str]]] = [
        ("tenant", [flt.tenant]),
        ("space", flt.spaces),
        ("readers", flt.readers),
        ("document", flt.documents),
        ("tags", flt.tags),
        ("source", flt.sources),
        ("media_type", flt.media_types),
    ]
    found: list[Condition] = [AnyOf(field, list(dict.fromkeys(values))) for field, values in asked if values]
    if flt.updated_after is not None or flt.updated_before is not None:
        found.append(Between("updated_at", flt.updated_after, flt.updated_before))
    return found


def of_document(tenant: str, document: str) -> list[Condition]:
    return [AnyOf("tenant", [tenant]), AnyOf("document", [document])]


def payload(chunk: IndexedChunk) -> dict[str, object]:
    """The fields that conditions look at, and the access version."""
    return {
        "tenant": chunk.tenant,
        "space": chunk.space,
        "document": chunk.document,
        "readers": list(chunk.readers),
        "media_type": chunk.media_type,
        "source": chunk.source,
        "tags": list(chunk.tags),
        "updated_at": chunk.updated_at,
        "access_version": chunk.access_version,
    }
