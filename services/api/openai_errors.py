"""Errors of the OpenAI-compatible routes, in the shape that OpenAI's clients read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from schemas.errors import Problem
from schemas.openai_protocol import ErrorReply
from services.api import problems
from services.api.authentication import KeyedRoute

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    409: "conflict_error",
    422: "run_failed",
    429: "rate_limit_error",
}
_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
_KEPT_HEADERS = ("Cache-Control", "Retry-After", "WWW-Authenticate")
_WORDS = {
    400: "The request cannot be met as it is",
    401: "No key, or one that does not count",
    403: "The key may see this but not do it",
    404: "Unknown, or hidden from this key",
    408: "The body came too slowly",
    409: "Conflicts with what is there, or the run was cancelled",
    413: "Over a limit",
    429: "Too many requests; `Retry-After` says when",
    503: "An engine or the model does not answer",
    504: "The work goes on, longer than a request waits; the error says how to read its outcome",
}
ERROR_REPLIES: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorReply, "description": words} for status, words in _WORDS.items()
}
"""For `responses=`: what these routes answer. What is refused before a route is found is a problem, as everywhere."""
for _status in (400, 413):
    ERROR_REPLIES[_status]["content"] = {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}

logger = logging.getLogger(__name__)


class Unsupported(Problem):
    """400: a parameter that would change what comes back and means nothing here."""

    status, type, title = 400, "unsupported_parameter", "This parameter is not supported"

    def __init__(self, param: str, detail: str) -> None:
        super().__init__(detail, param=param)


class RunFailed(Problem):
    """A run that was started for this request and came to nothing. A new request would be a new run, so no client should
    send one by itself."""

    title = "The run failed"


def error_of(problem: Problem) -> dict[str, Any]:
    """The object under `error`. Ids of the case, such as `run_id`, stand beside its four fields."""
    status = _shown_status(problem)
    first = next(iter(_listed(problem.extra.get("errors"))), {})
    beside = {name: value for name, value in problem.extra.items() if name.endswith("_id")}
    return {
        "message": problem.detail,
        "type": _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error"),
        "param": problem.extra.get("param", first.get("field")),
        "code": _CODES.get(status, problem.type),
        **beside,
    }


def _listed(errors: object) -> list[dict[str, str]]:
    return list(errors) if isinstance(errors, list) else []


def _shown_status(problem: Problem) -> int:
    """OpenAI's clients know no 422 for a request that is not valid: it is their 400. What came of a run stays as it is."""
    return 400 if problem.status == 422 and not isinstance(problem, RunFailed) else problem.status


def render(problem: Problem) -> Response:
    kept = problems.render(problem).headers
    headers = {name: kept[name] for name in _KEPT_HEADERS if name in kept}
    if isinstance(problem, RunFailed):
        headers["X-Should-Retry"] = "false"  # the clients obey: else they send a 409 or 5xx again by themselves
    return JSONResponse({"error": error_of(problem)}, _shown_status(problem), headers)


class OpenAIRoute(KeyedRoute):
    """A keyed route whose errors have OpenAI's shape, whatever raised them."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                return await handler(request)
            except ClientDisconnect:
                raise
            except Exception as error:
                problem = problems.problem_of(error)
                if problem.status == 500:
                    logger.error("a request failed unforeseen", exc_info=error)
                return render(problem)

        return handle
