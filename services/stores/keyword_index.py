"""The keyword index port: BM25 over tokens that our own analyser made.

Both engines are given the same tokens and split them at white space, so both find the same chunks. A query is tokens
too, added one by one as term queries: no query language ever reads what a user wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from schemas.index_records import DocumentPage, DocumentState, IndexedChunk, IndexFilter, KeywordQuery, ScoredChunk

MAX_TOKEN_CHARS = 255
MAX_QUERY_TOKENS = 400  # with two fields and the identifiers, under the 1,024 clauses that Elasticsearch allows
MAX_EXACT_TOKENS = 100
EXACT_BOOST = 32_768.0  # over any BM25 sum of MAX_QUERY_TOKENS terms, each under 2.2 ln(chunks)


class KeywordIndex(Protocol):
    """Every call may raise EngineDown("tantivy" or "elasticsearch") or TransientFailure; none of them retries.

    A write has returned when the next search sees it and a kill of any process does not lose it.
    """

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def upsert(self, chunks: Sequence[IndexedChunk]) -> None: ...

    async def search(self, query: KeywordQuery, flt: IndexFilter, limit: int) -> list[ScoredChunk]:
        """Chunks with at least one token in body or title, best first; those with an exact identifier before others.

        Score is BM25(body) + title_weight * BM25(title), lifted for exact identifiers (see `lift_exact`).
        """
        ...

    async def term_counts(self, tenant: str, spaces: Sequence[str], terms: Sequence[str]) -> dict[str, int]:
        """For each term, how many chunks of these spaces hold it in their body; for at most MAX_QUERY_TOKENS terms."""
        ...

    async def delete_ids(self, tenant: str, ids: Sequence[str]) -> int:
        """Remove these chunks of this tenant; how many there were."""
        ...

    async def delete_document(self, tenant: str, document: str) -> int: ...

    async def count_document(self, tenant: str, document: str) -> int: ...

    async def document_ids(self, tenant: str, document: str) -> set[str]: ...

    async def document_state(self, tenant: str, document: str) -> DocumentState: ...

    async def set_readers(self, tenant: str, document: str, readers: Sequence[str], access_version: int) -> None:
        """Change who may read. Chunks that already carry a later access version keep theirs."""
        ...

    async def set_version(self, tenant: str, document: str, media_type: str, updated_at: int) -> None:
        """Change what every chunk of the document tells of its version: those that a new version kept are older."""
        ...

    async def list_documents(self, after: str | None = None, limit: int = 1_000) -> DocumentPage:
        """Walk over the documents that the index knows, of all tenants."""
        ...

    async def clear(self) -> None: ...

    async def ping(self) -> None:
        """Return when the engine answers."""
        ...


def index_tokens(text: str) -> str:
    """Tokens with single spaces between, none longer than both engines keep whole."""
    return " ".join(token[:MAX_TOKEN_CHARS] for token in _encodable(text).split())


def query_tokens(tokens: Iterable[str], most: int) -> list[str]:
    """Each token once, at most `most`, cut as `index_tokens` cuts them."""
    return list(dict.fromkeys(index_tokens(" ".join(tokens)).split()))[:most]


def counted_terms(terms: Iterable[str]) -> dict[str, str]:
    """The terms to count, each with the token that stands for it in the index."""
    tokens = {term: index_tokens(term) for term in dict.fromkeys(terms)}
    return dict([(term, token) for term, token in tokens.items() if token][:MAX_QUERY_TOKENS])


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "ignore").decode()


def lift_exact(hits: Sequence[ScoredChunk]) -> list[ScoredChunk]:
    """Turn EXACT_BOOST into a lead that leaves scores comparable, and drop what scored nothing.

    A chunk with k exact identifiers gets k times the best BM25 of the list (and one), so it stays first and the
    others keep half of the scale when a fusion stretches scores between least and most.
    """
    split = [(hit.id, *divmod(hit.score, EXACT_BOOST)) for hit in hits if hit.score > 0]
    lead = max((bm25 for _, _, bm25 in split), default=0.0) + 1.0
    lifted = [ScoredChunk(chunk, bm25 + exact * lead) for chunk, exact, bm25 in split]
    return sorted(lifted, key=lambda hit: (-hit.score, hit.id))
