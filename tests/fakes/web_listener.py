"""A web server on a loopback port that gives scripted pages and notes what was asked of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Write = Callable[[asyncio.StreamWriter, str], Awaitable[None]]
"""Writes a whole reply; the second argument is the request's head."""


@dataclass
class WebListener:
    """`pages` by path; `asked` holds the heads of requests."""

    port: int = 0
    pages: dict[str, Write] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            self.asked.append(head)
            await self.pages[head.split(" ")[1]](writer, head)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client went away: that is often what a test is about
        finally:
            writer.close()


def page(status: int, body: bytes = b"", **headers: str) -> Write:
    """A reply of known length; `Content_Type` stands for `Content-Type`."""

    async def write(writer: asyncio.StreamWriter, head: str) -> None:
        fields = {"Content-Length": str(len(body)), **{name.replace("_", "-"): text for name, text in headers.items()}}
        lines = "".join(f"{name}: {text}\r\n" for name, text in fields.items())
        writer.write(f"HTTP/1.1 {status} Any\r\nConnection: close\r\n{lines}\r\n".encode() + body)

    return write


@asynccontextmanager
async def listening() -> AsyncIterator[WebListener]:
    listener = WebListener()
    server = await asyncio.start_server(listener.serve, "127.0.0.1", 0)
    listener.port = server.sockets[0].getsockname()[1]
    try:
        yield listener
    finally:
        server.close()
