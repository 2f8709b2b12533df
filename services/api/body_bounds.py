"""Bounds of a request while it arrives: bytes, pace, and characters that no text may hold (invariants 10 and 11)."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from schemas.errors import TooLarge
from schemas.settings import LimitSettings
from services.api.problems import Malformed, TooSlow

LEAST_BYTES_PER_S = 1_024
UPLOAD_PATH = re.compile(r"/v1/documents/?")
MULTIPART_ALLOWANCE_BYTES = 1_000_000
_ENCODED_NUL = re.compile(rb"%00|\x00")


class BodyBounds:
    """ASGI middleware. Bytes are counted as they come, whatever `Content-Length` says."""

    def __init__(self, app: ASGIApp, limits: LimitSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._limits = limits
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if "\x00" in scope["path"] or _ENCODED_NUL.search(scope.get("query_string", b"")):
            raise Malformed("An address cannot hold the character NUL.")
        limit, name = self._limit(scope)
        _check_announced(scope, limit, name)
        body = _BoundedBody(receive, limit, name, self._limits.slow_client_s, self._clock)
        await self._app(scope, body, send)

    def _limit(self, scope: Scope) -> tuple[int, str]:
        """An upload may hold several files: each has its own bound, and all together this one."""
        if scope["method"] == "POST" and UPLOAD_PATH.fullmatch(scope["path"]):
            files = self._limits.upload_bytes * self._limits.files_per_request
            return files + MULTIPART_ALLOWANCE_BYTES, "PERDURE_LIMITS__UPLOAD_BYTES"
        return self._limits.request_bytes, "PERDURE_LIMITS__REQUEST_BYTES"


def _check_announced(scope: Scope, limit: int, name: str) -> None:
    for header, value in scope["headers"]:
        if header == b"content-length" and value.isdigit() and int(value[:20]) > limit:
            raise _too_large(limit, name)


def _too_large(limit: int, name: str) -> TooLarge:
    return TooLarge(f"The request is over {limit} bytes, the bound set by {name}.", limit_bytes=limit, setting=name)


class _BoundedBody:
    """Stands in for `receive`. Once the body is whole it waits as long as it takes: for the caller to go away."""

    def __init__(
        self, receive: Receive, limit: int, name: str, slow_client_s: float, clock: Callable[[], float]
    ) -> None:
        self._receive = receive
        self._limit = limit
        self._name = name
        self._slow_client_s = slow_client_s
        self._clock = clock
        self._waited_s = 0.0
        self._received = 0
        self._whole = False

    async def __call__(self) -> Message:
        if self._whole:
            return await self._receive()
        message = await self._within_pace()
        if message["type"] != "http.request":
            return message
        self._received += len(message.get("body", b""))
        if self._received > self._limit:
            raise _too_large(self._limit, self._name)
        self._whole = not message.get("more_body", False)
        return message

    async def _within_pace(self) -> Message:
        """Only time spent waiting for the caller counts: a slow disk of ours is not their fault."""
        allowed_s = self._slow_client_s + self._received / LEAST_BYTES_PER_S - self._waited_s
        began = self._clock()
        try:
            async with asyncio.timeout(min(allowed_s, self._slow_client_s)):
                return await self._receive()
        except TimeoutError:
            raise TooSlow(
                f"The body came slower than {LEAST_BYTES_PER_S} bytes a second for {self._slow_client_s:.0f} s."
            ) from None
        finally:
            self._waited_s += self._clock() - began
