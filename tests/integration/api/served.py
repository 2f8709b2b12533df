"""A real server on a free port, and a client of its event streams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn

from services.api.app import create_app
from services.container import Stream


@dataclass(frozen=True)
class Received:
    """One event as it came."""

    id: str
    event: str
    data: Any


@asynccontextmanager
async def serve(container: Stream) -> AsyncIterator[str]:
    """The base URL of a uvicorn server on this loop; its hub listens."""
    config = uvicorn.Config(create_app(container), host="127.0.0.1", port=0, log_level="error")
    server = uvicorn.Server(config)
    task = asyncio.create_task(server._serve())  # without its signal handlers
    try:
        while not server.started:
            await asyncio.sleep(0.01)
        await container.hub.listening.wait()
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        await container.hub.stop()
        server.should_exit = True
        await task


@asynccontextmanager
async def open_stream(
    base: str, key: str, run_id: str, *, last_event_id: str | None = None, after: str | None = None
) -> AsyncIterator[AsyncIterator[Received]]:
    headers = {"Authorization": f"Bearer {key}"}
    if last_event_id is not None:
        headers["Last-Event-ID"] = last_event_id
    params = {"after": after} if after is not None else {}
    async with (
        httpx.AsyncClient(base_url=base, headers=headers, timeout=60) as http,
        http.stream("GET", f"/v1/runs/{run_id}/events", params=params) as reply,
    ):
        assert reply.status_code == 200, await reply.aread()
        assert reply.headers["content-type"].startswith("text/event-stream")
        yield received(reply)


async def received(reply: httpx.Response) -> AsyncIterator[Received]:
    fields: dict[str, str] = {}
    async for line in reply.aiter_lines():
        if line == "" and "event" in fields:
            yield Received(fields["id"], fields["event"], json.loads(fields["data"]))
            fields = {}
        elif line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value


async def take(stream: AsyncIterator[Received], count: int) -> list[Received]:
    return [await anext(stream) for _ in range(count)]


async def rest(stream: AsyncIterator[Received]) -> list[Received]:
    return [each async for each in stream]
