"""`POST /v1/search`: the retrieval path's result in the contract's shape."""

from __future__ import annotations

from schemas.access import Actor
from schemas.errors import EngineDown, InvalidRequest, Unavailable
from schemas.search import SearchHit, SearchRequest, SearchResult
from schemas.settings import LimitSettings
from services.documents.clean_text import clean_text
from services.retrieval.diversify import ScoredChunk
from services.retrieval.finding import Finding, Found


class Search:
    """Answers one search request."""

    def __init__(self, finding: Finding, limits: LimitSettings) -> None:
        self._finding = finding
        self._limits = limits

    async def search(self, actor: Actor, request: SearchRequest) -> SearchResult:
        """As many hits as `limit` asks for if that many are readable. Unavailable when no leg can answer."""
        query = clean_text(request.query)
        if len(query) > self._limits.query_chars:
            bound = f"PERDURE_LIMITS__QUERY_CHARS={self._limits.query_chars}"
            raise InvalidRequest(f"The query has {len(query)} characters; shorten it ({bound}).")
        try:
            found = await self._finding.find(
                actor, query, asked_spaces(request.space, request.spaces), request.filters, request.limit
            )
        except EngineDown as down:
            raise Unavailable(f"No way of searching answers now: {down.detail}", engine=down.engine) from down
        hits = [_hit(hit, found, request.explain) for hit in found.hits]
        return SearchResult(legs=found.legs, degraded=found.degraded, hits=hits)


def asked_spaces(space: str | None, spaces: list[str] | None) -> list[str] | None:
    """`space` and `spaces` together; null when neither was sent, which means all that the key can see."""
    named = [*([space] if space is not None else []), *(spaces or [])]
    return named or None


def _hit(hit: ScoredChunk, found: Found, explain: bool) -> SearchHit:
    chunk = hit.chunk
    return SearchHit(
        chunk_id=chunk.chunk_id,
        document_id=chunk.document_id,
        document_version=chunk.document_version,
        title=chunk.title,
        heading_path=list(chunk.heading_path),
        page_start=chunk.page_start,
        page_end=chunk.page_end,
        start=chunk.start,
        end=chunk.end,
        text=chunk.text,
        score=round(hit.score, 6),
        scores=found.scores.get(chunk.chunk_id) if explain else None,
    )
