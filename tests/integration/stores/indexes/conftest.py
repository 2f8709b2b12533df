"""Every index adapter under the same tests. Elasticsearch takes part when PERDURE_TEST_ELASTICSEARCH_URL names one."""

from __future__ import annotations

import os
import uuid
import warnings
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from qdrant_client import AsyncQdrantClient

from services.stores.elasticsearch_keywords import ElasticsearchKeywords, connect_elasticsearch
from services.stores.keyword_index import KeywordIndex
from services.stores.qdrant_edge_vectors import QdrantEdgeVectors
from services.stores.qdrant_server_vectors import QdrantServerVectors, connect_qdrant
from services.stores.tantivy_keywords import TantivyKeywords
from services.stores.vector_index import VectorIndex

VECTOR_ADAPTERS = ["qdrant_edge", "qdrant_server"]
KEYWORD_ADAPTERS = ["tantivy", pytest.param("elasticsearch", marks=pytest.mark.peers)]


def elasticsearch(name: str) -> ElasticsearchKeywords:
    url = os.environ.get("PERDURE_TEST_ELASTICSEARCH_URL")
    if not url:
        pytest.skip("PERDURE_TEST_ELASTICSEARCH_URL is not set: tests/peers/README.md says how to start one")
    return ElasticsearchKeywords(connect_elasticsearch(url, None, timeout_s=30), name, replicas=0)


def qdrant_server() -> QdrantServerVectors:
    """A real server when PERDURE_TEST_QDRANT_URL names one, else the client's own in-process engine."""
    url = os.environ.get("PERDURE_TEST_QDRANT_URL")
    client = connect_qdrant(url, None) if url else AsyncQdrantClient(":memory:")
    return QdrantServerVectors(client, collection=f"test_{uuid.uuid4().hex}")


def build(adapter: str, directory: Path) -> VectorIndex | KeywordIndex:
    if adapter == "qdrant_edge":
        return QdrantEdgeVectors(directory / "vectors")
    if adapter == "qdrant_server":
        return qdrant_server()
    if adapter == "tantivy":
        return TantivyKeywords(directory / "keywords", gather_s=0.001)
    return elasticsearch(f"test-{uuid.uuid4().hex}")


async def opened(adapter: str, directory: Path) -> AsyncIterator[VectorIndex | KeywordIndex]:
    index = build(adapter, directory)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Payload indexes have no effect")  # said by the in-process engine
        await index.open()
        yield index
        await index.clear()
        await index.close()


@pytest.fixture(params=VECTOR_ADAPTERS)
async def vector_index(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[VectorIndex | KeywordIndex]:
    async for index in opened(request.param, tmp_path):
        yield index


@pytest.fixture(params=KEYWORD_ADAPTERS)
async def keyword_index(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[VectorIndex | KeywordIndex]:
    async for index in opened(request.param, tmp_path):
        yield index


@pytest.fixture(params=[*VECTOR_ADAPTERS, *KEYWORD_ADAPTERS])
async def any_index(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[VectorIndex | KeywordIndex]:
    async for index in opened(request.param, tmp_path):
        yield index
