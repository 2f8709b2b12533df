"""What the cluster adapters make of engines that are away, busy, or refuse."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from schemas.errors import EngineDown, PermanentFailure, TransientFailure
from services.stores.elasticsearch_keywords import ElasticsearchKeywords, connect_elasticsearch
from services.stores.qdrant_server_vectors import QdrantServerVectors, connect_qdrant
from tests.integration.stores.indexes.chunks import MODEL, axis, chunk, scope, words

Call = Callable[[QdrantServerVectors | ElasticsearchKeywords], Awaitable[object]]


async def _find(index: QdrantServerVectors | ElasticsearchKeywords) -> object:
    if isinstance(index, QdrantServerVectors):
        return await index.search(axis(0), scope(), 10, MODEL)
    return await index.search(words("word"), scope(), 10)


CALLS: dict[str, Call] = {
    "ping": lambda index: index.ping(),
    "upsert": lambda index: index.upsert([chunk("1")]),
    "search": _find,
    "delete_document": lambda index: index.delete_document("a", "d"),
    "delete_ids": lambda index: index.delete_ids("a", [chunk("1").id]),
    "count_document": lambda index: index.count_document("a", "d"),
    "document_state": lambda index: index.document_state("a", "d"),
    "set_readers": lambda index: index.set_readers("a", "d", ["user:u"], 2),
    "set_version": lambda index: index.set_version("a", "d", "text/plain", 7),
    "list_documents": lambda index: index.list_documents(),
    "clear": lambda index: index.clear(),
}


@asynccontextmanager
async def answering(status: int, body: dict[str, object], headers: str = "") -> AsyncIterator[tuple[str, list[str]]]:
    """A server that gives every request the same answer; its URL, and the request lines it has seen."""
    seen: list[str] = []
    content = json.dumps(body).encode()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        seen.append(head.splitlines()[0])
        writer.write(
            f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nX-Elastic-Product: Elasticsearch\r\n"
            f"{headers}Content-Length: {len(content)}\r\nConnection: close\r\n\r\n".encode()
        )
        writer.write(b"" if head.startswith("HEAD") else content)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", seen


def connect(engine: str, url: str) -> QdrantServerVectors | ElasticsearchKeywords:
    if engine == "qdrant":
        return QdrantServerVectors(connect_qdrant(url, None, timeout_s=5))
    return ElasticsearchKeywords(connect_elasticsearch(url, None, timeout_s=5))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("engine", ["qdrant", "elasticsearch"])
async def test_an_engine_that_is_away_is_named_as_down(engine: str, call: str) -> None:
    async with answering(200, {}) as (url, _):
        pass  # the port is free again
    index = connect(engine, url)
    with pytest.raises(EngineDown, match="does not answer") as down:
        await CALLS[call](index)
    assert down.value.engine == engine
    await index.close()


@pytest.mark.parametrize("status", [500, 503, 401])
@pytest.mark.parametrize("engine", ["qdrant", "elasticsearch"])
async def test_an_engine_that_fails_or_refuses_our_key_is_down_and_asked_only_once(engine: str, status: int) -> None:
    async with answering(status, {"error": "no"}) as (url, seen):
        index = connect(engine, url)
        for call in CALLS.values():
            seen.clear()
            with pytest.raises(EngineDown):
                await call(index)
            assert len(seen) == 1
        await index.close()


@pytest.mark.parametrize("headers", ["", "Retry-After: 7\r\n"])
@pytest.mark.parametrize("engine", ["qdrant", "elasticsearch"])
async def test_an_engine_that_asks_to_slow_down_is_a_transient_failure(engine: str, headers: str) -> None:
    async with answering(429, {"status": {"error": "busy"}}, headers) as (url, seen):
        index = connect(engine, url)
        with pytest.raises(TransientFailure) as busy:
            await index.upsert([chunk("1")])
        assert len(seen) == 1
        if engine == "qdrant" and headers:
            assert busy.value.retry_after_s == 7
        await index.close()


@pytest.mark.parametrize(
    ("status", "expected"), [(429, TransientFailure), (503, EngineDown), (404, EngineDown), (400, PermanentFailure)]
)
async def test_a_bulk_request_that_succeeds_with_failed_items_has_failed(
    status: int, expected: type[Exception]
) -> None:
    item = {"index": {"_id": "x", "status": status, "error": {"type": "some_exception", "reason": "secret text"}}}
    async with answering(200, {"errors": True, "items": [item]}) as (url, _):
        index = connect("elasticsearch", url)
        with pytest.raises(expected) as failure:
            await index.upsert([chunk("1")])
        assert "secret text" not in str(failure.value)
        await index.close()


@pytest.mark.parametrize("call", ["delete_document", "set_readers"])
async def test_chunks_left_out_of_a_removal_or_change_are_not_reported_as_done(call: str) -> None:
    left_out = {"deleted": 2, "failures": [], "version_conflicts": 1, "timed_out": False}
    async with answering(200, left_out) as (url, _):
        index = connect("elasticsearch", url)
        with pytest.raises(TransientFailure, match="left out"):
            await CALLS[call](index)
        await index.close()
