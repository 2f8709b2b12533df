"""Names of chunks: the same text under the same headings keeps its name, and so its vector, in every version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b
from uuid import UUID

from schemas.parsed_documents import ChunkDraft


def chunk_id(document_id: str, embedding_input: str, occurrence: int) -> str:
    """A UUID (RFC 9562 version 8: our own scheme) made from what is embedded; `occurrence` counts earlier equal inputs
    in the same version."""
    key = f"{document_id}\x00{occurrence}\x00{embedding_input}".encode()
    number = int.from_bytes(blake2b(key, digest_size=16, person=b"perdure-chunk").digest(), "big")
    number = (number & ~(0xF << 76)) | (0x8 << 76)
    number = (number & ~(0x3 << 62)) | (0x2 << 62)
    return str(UUID(int=number))


def identify(document_id: str, drafts: Iterable[ChunkDraft]) -> list[tuple[str, ChunkDraft]]:
    """Each draft with its id, in order; ids are unique within the list."""
    seen: Counter[str] = Counter()
    named: list[tuple[str, ChunkDraft]] = []
    for draft in drafts:
        named.append((chunk_id(document_id, draft.embedding_input, seen[draft.embedding_input]), draft))
        seen[draft.embedding_input] += 1
    return named
