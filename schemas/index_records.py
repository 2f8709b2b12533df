"""What goes into the vector and keyword indexes, and what is asked of them.

The indexes are caches: a hit is only a chunk id and a score, and counts after Postgres has said that it may.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IndexedChunk:
    """One chunk as both indexes hold it: each index takes the fields it needs.

    `vector` is floats, or little-endian float32 bytes. The token fields are space-joined tokens of our analyser:
    an index splits them at white space and does nothing else to them. `exact_tokens` are identifiers kept whole.
    """

    id: str
    tenant: str
    space: str
    document: str
    access_version: int
    readers: Sequence[str]
    media_type: str = ""
    source: str = ""
    tags: Sequence[str] = ()
    updated_at: int = 0
    model: str = ""
    vector: Sequence[float] | bytes = ()
    title_tokens: str = ""
    body_tokens: str = ""
    exact_tokens: str = ""


@dataclass(frozen=True, slots=True)
class IndexFilter:
    """Who asks, and about what: fields join by AND, values inside a field by OR.

    No spaces or no readers: nothing matches. The other fields, when empty, were not asked for.
    Times are Unix seconds: `updated_after` is included, `updated_before` is not.
    """

    tenant: str
    spaces: Sequence[str]
    readers: Sequence[str]
    documents: Sequence[str] = ()
    tags: Sequence[str] = ()
    sources: Sequence[str] = ()
    media_types: Sequence[str] = ()
    updated_after: int | None = None
    updated_before: int | None = None

    @property
    def matches_nothing(self) -> bool:
        return not self.spaces or not self.readers


@dataclass(frozen=True, slots=True)
class KeywordQuery:
    """Analysed words to look for. `exact` are identifiers kept whole (`ppr-9087`): a chunk that has one comes first."""

    tokens: Sequence[str]
    exact: Sequence[str] = ()
    title_weight: float = 0.3


@dataclass(frozen=True, slots=True)
class ScoredChunk:
    """A chunk id that an index found, and the score it gave."""

    id: str
    score: float


@dataclass(frozen=True, slots=True)
class DocumentState:
    """What an index holds of one document: chunk ids and the distinct access versions and models, each sorted."""

    ids: tuple[str, ...]
    access_versions: tuple[int, ...] = ()
    models: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        return document_digest(self.ids, self.access_versions)


@dataclass(frozen=True, slots=True, order=True)
class IndexedDocument:
    """A document that an index holds chunks of."""

    tenant: str
    document: str


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """Some documents of which an index holds chunks. `after` asks for the next page; null ends the walk.

    A document may come on several pages, and a page may hold none: only a null `after` means the end.
    """

    documents: tuple[IndexedDocument, ...]
    after: str | None


def document_digest(ids: Iterable[str], access_versions: Iterable[int]) -> str:
    """One value to compare between Postgres and an index: SHA-256 over the sorted ids and access versions."""
    lines = [*sorted(set(ids)), "", *(str(version) for version in sorted(set(access_versions)))]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
