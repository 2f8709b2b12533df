"""`/mcp`: the Model Context Protocol over streamable HTTP. Each request stands alone, so any replica can serve it.

The protocol's library takes a second to import. It is imported, in a thread, when the first client comes; a start does not wait
for it.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import Protocol

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from services.api.authentication import caller_of
from services.container import Serving

PATH = "/mcp"
_SERVER = "services.api.mcp.server"


class Manager(Protocol):
    """Serves requests while `run` is entered."""

    def run(self) -> AbstractAsyncContextManager[None]: ...
    async def handle_request(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class McpEndpoint:
    """An ASGI application for one path. Every request needs a key with the scope `read`."""

    path = PATH

    def __init__(self, container: Serving) -> None:
        self._container = container
        self._beginning = asyncio.Lock()
        self._manager: Manager | None = None
        self._stopping = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = self  # under whose path the request is counted
        request = Request(scope, receive)
        caller = await caller_of(request)
        caller.require("read")
        if request.method != "POST":  # there is no session to listen to or to end
            raise HTTPException(405, headers={"Allow": "POST"})
        manager = self._manager or await self._begin()
        await manager.handle_request(scope, receive, send)

    async def _begin(self) -> Manager:
        async with self._beginning:
            if self._manager is None:
                server = await asyncio.to_thread(import_module, _SERVER)
                manager: Manager = server.build_manager(self._container)
                began = asyncio.Event()
                self._running = asyncio.create_task(self._run(manager, began))
                await began.wait()
                self._manager = manager
        return self._manager

    async def _run(self, manager: Manager, began: asyncio.Event) -> None:
        """Enters and leaves in one task, as the library's task group wants it."""
        async with manager.run():
            began.set()
            await self._stopping.wait()

    async def stop(self) -> None:
        """Ends what is still served."""
        self._stopping.set()
        if self._running is not None:
            await self._running
