"""Every error leaves as `application/problem+json` (RFC 9457), without internals."""

from __future__ import annotations

import logging
import math
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from schemas.errors import EngineDown, PermanentFailure, Problem, TransientFailure, Unavailable

MEDIA_TYPE = "application/problem+json"
TYPE_BASE = "urn:perdure:problem:"
MAX_ERRORS = 20
_TITLES = {400: "The request is not well formed", 404: "There is no such thing here", 405: "This method is not allowed"}
_TYPES = {
    400: "malformed", 401: "unauthenticated", 403: "forbidden", 404: "not_found", 405: "method_not_allowed",
    408: "too_slow", 409: "conflict", 413: "too_large", 415: "unsupported_media_type", 422: "invalid_request",
}  # fmt: skip

logger = logging.getLogger(__name__)


class Malformed(Problem):
    """400: the request cannot be read."""

    status, type, title = 400, "malformed", _TITLES[400]


class TooSlow(Problem):
    """408: the body came too slowly."""

    status, type, title = 408, "too_slow", "The request came too slowly"


class ProblemShape(BaseModel):
    """What every error looks like; more fields say more of the case."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(examples=[TYPE_BASE + "not_found"])
    title: str = Field(examples=["There is no such thing here"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["There is no space 'handbok' that this key can see."])
    request_id: str | None = Field(None, examples=["01890a5d-ac96-774b-bcce-b302099a8057"])


def render(problem: Problem, request_id: str | None = None) -> JSONResponse:
    body: dict[str, Any] = {
        **problem.extra,
        "type": TYPE_BASE + problem.type,
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
    }
    if request_id:
        body["request_id"] = request_id
    return JSONResponse(body, problem.status, _headers(problem), MEDIA_TYPE)


def _headers(problem: Problem) -> dict[str, str]:
    headers = {"Cache-Control": "no-store"}
    if problem.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="perdure"'
    wait_s = problem.extra.get("retry_after_s")
    if isinstance(wait_s, int | float):
        headers["Retry-After"] = str(max(1, math.ceil(wait_s)))
    return headers


def problem_of(error: Exception) -> Problem:
    """The problem that an exception is to a caller; what we did not foresee is 500 and says nothing."""
    match error:
        case Problem():
            return error
        case EngineDown():
            return Unavailable(f"{error.detail}. Try again shortly.", engine=error.engine, retry_after_s=5)
        case TransientFailure():
            return Unavailable(f"{error.detail}. Try again.", type="busy", retry_after_s=error.retry_after_s or 1)
        case PermanentFailure():
            return Problem(error.detail, type=error.code, status=422)
        case RequestValidationError():
            return _validation(error)
        case HTTPException():
            return _http(error)
        case _:
            return Problem("Something went wrong on our side; the request id helps to find it.")


def _validation(error: RequestValidationError) -> Problem:
    found = error.errors()
    if any(each["type"] == "json_invalid" for each in found):
        return Malformed("The body is not valid JSON.")
    errors = [
        {"field": ".".join(str(part) for part in each["loc"]), "message": str(each["msg"])}
        for each in found[:MAX_ERRORS]
    ]
    first = f"{errors[0]['field']}: {errors[0]['message']}" if errors else "The request is not valid"
    problem = Problem(f"{first}.", type="invalid_request", status=422, errors=errors)
    problem.title = "The request is not valid"
    return problem


def _http(error: HTTPException) -> Problem:
    details = {404: "There is nothing at this address.", 405: "This address does not know this method."}
    problem = Problem(
        details.get(error.status_code, str(error.detail)),
        type=_TYPES.get(error.status_code, "refused"),
        status=error.status_code,
    )
    problem.title = _TITLES.get(error.status_code, str(error.detail))
    return problem


async def handle(request: Request, error: Exception) -> Response:
    """The one handler of all errors that a route raises."""
    problem = problem_of(error)
    if problem.status == 500:
        logger.error("a request failed unforeseen", exc_info=error)
    response = render(problem, getattr(request.state, "request_id", None))
    if isinstance(error, HTTPException) and error.headers:
        response.headers.update(error.headers)
    return response


def install(app: FastAPI) -> None:
    for kind in (Problem, EngineDown, TransientFailure, PermanentFailure, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, handle)
