"""The outermost layer of a request: id, trace, metrics, headers, and an end for whatever was not foreseen."""

from __future__ import annotations

import logging
import re
import time
import uuid
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from schemas.errors import EngineDown, Failure, Problem
from services.api import metrics, problems, trace_context
from services.stores.precedence import prompt

ACCEPTED_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
HEADERS = [(b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer")]

logger = logging.getLogger(__name__)


class RequestScope:
    """ASGI middleware. `request.state.request_id` is the caller's `X-Request-Id` if it is fit, else a new one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        given = headers.get("x-request-id", "")
        request_id = given if ACCEPTED_ID.fullmatch(given) else uuid.uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        with trace_context.server_span(scope["method"], headers) as span:
            span.set_attribute("http.request.method", scope["method"])
            reply = _Reply(scope, send, request_id, trace_context.traceparent_of(span))
            await self._serve(scope, receive, reply, request_id)
            route = reply.finish()
            span.update_name(f"{scope['method']} {route}")
            span.set_attribute("http.route", route)
            span.set_attribute("http.response.status_code", reply.status)

    async def _serve(self, scope: Scope, receive: Receive, reply: _Reply, request_id: str) -> None:
        try:
            with prompt():
                await self._app(scope, receive, reply)
        except ClientDisconnect:
            return
        except Exception as error:
            problem = problems.problem_of(error)
            if not isinstance(error, Problem | Failure):
                logger.exception("request %s failed unforeseen", request_id)
            elif isinstance(error, EngineDown):
                logger.warning("request %s: %s", request_id, error.detail)
            if not reply.begun:
                await problems.render(problem, request_id)(scope, receive, reply)


class _Reply:
    """Passes the reply on with our headers and notes its status."""

    def __init__(self, scope: Scope, send: Send, request_id: str, traceparent: str) -> None:
        self._scope = scope
        self._send = send
        self._extra = [
            *HEADERS,
            (b"x-request-id", request_id.encode()),
            (b"traceparent", traceparent.encode()),
        ]
        self._began_at = time.perf_counter()
        self._first_byte_s: float | None = None
        self.begun = False
        self.status = 499  # the caller left before there was a reply

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun, self.status = True, message["status"]
            self._first_byte_s = time.perf_counter() - self._began_at
            message = {**message, "headers": [*message.get("headers", []), *self._extra]}
        await self._send(message)

    def finish(self) -> str:
        """Counts the request under its route's template, so that ids do not become labels; gives the template."""
        found: Any = self._scope.get("route")
        route = getattr(found, "path_format", None) or getattr(found, "path", None) or "unknown"
        method = self._scope["method"] if route != "unknown" else "any"
        metrics.REQUESTS.labels(method, route, str(self.status)).inc()
        if self._first_byte_s is not None:
            metrics.LATENCY.labels(method, route).observe(self._first_byte_s)
        return str(route)
