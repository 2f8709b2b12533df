"""One question for both kinds of index: which of the chunks made by `chunk` pass this filter."""

from __future__ import annotations

from schemas.index_records import IndexFilter
from services.stores.elasticsearch_keywords import ElasticsearchKeywords
from services.stores.qdrant_edge_vectors import QdrantEdgeVectors
from services.stores.qdrant_server_vectors import QdrantServerVectors
from services.stores.tantivy_keywords import TantivyKeywords
from tests.integration.stores.indexes.chunks import MODEL, axis, words

AnyIndex = QdrantEdgeVectors | QdrantServerVectors | TantivyKeywords | ElasticsearchKeywords


async def find(index: AnyIndex, flt: IndexFilter, limit: int = 100) -> set[str]:
    if isinstance(index, QdrantEdgeVectors | QdrantServerVectors):
        hits = await index.search(axis(0), flt, limit, MODEL)
    else:
        hits = await index.search(words("word"), flt, limit)
    return {hit.id for hit in hits}
