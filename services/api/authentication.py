"""Who calls. It comes before the body is read, so nobody unknown costs more than one look-up."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from typing import Annotated, Any, ClassVar

from fastapi import Depends, Request, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.responses import Response

from schemas.errors import RateLimited, Unauthenticated
from services.access.authenticate import Caller, authenticate
from services.api.metrics import AUTH_FAILURES
from services.api.problems import Malformed
from services.api.state import api_state

_NUL = "\x00"
BEARER = HTTPBearer(auto_error=False, scheme_name="api_key", description="An API key: `Authorization: Bearer prd_...`")


async def caller_of(request: Request) -> Caller:
    """The request's caller, looked up once. Unauthenticated without a key that counts; RateLimited when too eager."""
    known = getattr(request.state, "caller", None)
    if isinstance(known, Caller):
        return known
    state = api_state(request)
    try:
        caller = await authenticate(state.container.database, _presented_key(request))
    except Unauthenticated:
        AUTH_FAILURES.inc()
        wait_s = state.failures_per_address.take(request.client.host if request.client else "unknown")
        if wait_s:
            raise RateLimited("Too many wrong keys from this address.", retry_after_s=wait_s) from None
        raise
    wait_s = state.requests_per_key.take(caller.key_id)
    if wait_s:
        limit = state.container.settings.limits.requests_per_minute
        raise RateLimited(
            f"This key may make {limit} requests a minute (PERDURE_LIMITS__REQUESTS_PER_MINUTE).", retry_after_s=wait_s
        )
    request.state.caller = caller
    return caller


def _presented_key(request: Request) -> str:
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise Unauthenticated("Send an API key as `Authorization: Bearer <key>`.")
    return key.strip()


class _Request(Request):
    """A request whose JSON holds only text that can be stored: no NUL, no half of a surrogate pair (invariant 10)."""

    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            try:
                found = json.loads(await self.body(), parse_constant=_refuse_constant)
            except json.JSONDecodeError:
                raise
            except (ValueError, RecursionError) as error:
                raise Malformed("The body is not JSON in UTF-8 of ordinary depth and numbers.") from error
            self._json = _storable(found)
        return self._json


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _storable(value: Any) -> Any:
    match value:
        case str():
            return value if value.isascii() and _NUL not in value else _joined(value).replace(_NUL, "")
        case list():
            return [_storable(each) for each in value]
        case dict():
            return {_storable(name): _storable(each) for name, each in value.items()}
        case _:
            return value


def _joined(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class KeyedRoute(APIRoute):
    """A route that needs a key: authenticates first, reads the body after that."""

    goes_ahead: ClassVar[bool] = False
    """Whether background work waits for such a request, without its body's way in and its reply's way out."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            ahead = api_state(request).container.database.precedence.ahead if self.goes_ahead else nullcontext
            with ahead():
                await caller_of(request)
            clean = _Request(request.scope, request.receive)
            try:
                if self.body_field is not None:
                    await clean.body()  # here its bounds speak for themselves; FastAPI would call them unreadable
                with ahead():
                    return await handler(clean)
            except RecursionError as error:
                raise Malformed("The body is nested too deeply.") from error

        return handle


class PromptRoute(KeyedRoute):
    """A question that is over in some milliseconds."""

    goes_ahead = True


async def _reader(request: Request, _: Annotated[object, Security(BEARER)] = None) -> Caller:
    caller = await caller_of(request)
    caller.require("read")
    return caller


async def _writer(request: Request, _: Annotated[object, Security(BEARER)] = None) -> Caller:
    caller = await caller_of(request)
    caller.require("write")
    return caller


async def _admin(request: Request, _: Annotated[object, Security(BEARER)] = None) -> Caller:
    caller = await caller_of(request)
    caller.require("admin")
    return caller


async def _anyone(request: Request, _: Annotated[object, Security(BEARER)] = None) -> Caller:
    return await caller_of(request)


Reader = Annotated[Caller, Depends(_reader)]
Writer = Annotated[Caller, Depends(_writer)]
Admin = Annotated[Caller, Depends(_admin)]
Anyone = Annotated[Caller, Depends(_anyone)]
