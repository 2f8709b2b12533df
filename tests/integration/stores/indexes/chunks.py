"""Chunks and filters for the index tests: each argument has a value that does not matter unless a test says so."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from schemas.index_records import IndexedChunk, IndexFilter, KeywordQuery

MODEL = "axes-8"


def chunk_id(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, name))


def axis(position: int, dimension: int = 8, lean: float = 0.0) -> list[float]:
    """A unit vector along one axis, leaning a little to the next one."""
    vector = [0.0] * dimension
    vector[position % dimension] = 1.0
    vector[(position + 1) % dimension] += lean
    return vector


def chunk(name: str, **fields: Any) -> IndexedChunk:
    """A chunk whose id follows from its name, in space `s` of tenant `a`, readable by the space."""
    given: dict[str, Any] = {
        "id": chunk_id(name),
        "tenant": "a",
        "space": "s",
        "document": "d",
        "access_version": 1,
        "readers": ["space:s"],
        "media_type": "text/plain",
        "source": "upload",
        "updated_at": 1_000,
        "model": MODEL,
        "vector": axis(0),
        "body_tokens": "word",
    }
    return IndexedChunk(**{**given, **fields})


def scope(
    tenant: str = "a", spaces: Sequence[str] = ("s",), readers: Sequence[str] = ("space:s",), **more: Any
) -> IndexFilter:
    return IndexFilter(tenant=tenant, spaces=spaces, readers=readers, **more)


def words(text: str, *exact: str, title_weight: float = 0.3) -> KeywordQuery:
    return KeywordQuery(tokens=text.split(), exact=exact, title_weight=title_weight)
