"""`Idempotency-Key` on every POST: the same key and body have one effect and one reply.

The key is reserved before any state. Services complete it in their own transaction (`idempotency_store.complete`); what
they did not complete is completed here, after the act.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Header, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response

from schemas.errors import Conflict, EngineDown
from services.api.authentication import caller_of
from services.api.problems import Malformed
from services.api.state import api_state
from services.stores import idempotency_store
from services.stores.database import Database

WAIT_S = 10.0
LOOK_EVERY_S = 0.1
MAX_KEY_CHARS = 255
Reply = TypeVar("Reply", bound=BaseModel)


class Once:
    """Runs a request's act at most once per key; without a key, just runs it."""

    def __init__(
        self, database: Database, tenant: str, actor: str, key: str | None, place: str, status: int, hours: float
    ) -> None:
        self._database = database
        self._tenant = tenant
        self._actor = actor
        self._key = key
        self._place = place
        self._status = status
        self._hours = hours

    async def __call__(
        self, body: object, act: Callable[[], Awaitable[Reply]], *, hidden: frozenset[str] = frozenset()
    ) -> Reply | Response:
        """`body` is what the caller asked for, as far as it matters; `hidden` fields of the reply are not replayed."""
        if self._key is None:
            return await act()
        held = await self._reserve(self._digest(body))
        if isinstance(held, idempotency_store.Replay):
            return JSONResponse(held.response, held.status, {"Idempotency-Replayed": "true"})
        held.hidden = hidden
        token = idempotency_store.CURRENT.set(held)
        try:
            reply = await act()
            if not held.completed:
                async with self._database.begin(self._tenant) as transaction:
                    await idempotency_store.complete(transaction, reply)
            return reply
        except BaseException:
            with contextlib.suppress(EngineDown):  # then the lease ends it
                await asyncio.shield(idempotency_store.release(self._database, held))
            raise
        finally:
            idempotency_store.CURRENT.reset(token)

    async def _reserve(self, body_hash: str) -> idempotency_store.Reservation | idempotency_store.Replay:
        assert self._key is not None
        for _ in range(int(WAIT_S / LOOK_EVERY_S)):
            found = await idempotency_store.reserve(
                self._database,
                tenant=self._tenant,
                actor=self._actor,
                key=self._key,
                body_hash=body_hash,
                status=self._status,
                hours=self._hours,
            )
            if not isinstance(found, idempotency_store.Busy):
                return found
            await asyncio.sleep(LOOK_EVERY_S)
        raise Conflict(
            "A request with this Idempotency-Key is still under way.", type="idempotency_key_busy", retry_after_s=5
        )

    def _digest(self, body: object) -> str:
        """Over the request's meaning, not its bytes: a multipart boundary or the order of JSON fields is no difference."""
        plain: Any = body.model_dump(mode="json") if isinstance(body, BaseModel) else body
        text = json.dumps([self._place, plain], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


async def _once(
    request: Request,
    idempotency_key: Annotated[
        str | None, Header(description="The same key and body have one effect and one reply.")
    ] = None,
) -> Once:
    if idempotency_key is not None and not (
        1 <= len(idempotency_key) <= MAX_KEY_CHARS and idempotency_key.isascii() and idempotency_key.isprintable()
    ):
        raise Malformed(f"An Idempotency-Key has 1 to {MAX_KEY_CHARS} printable ASCII characters.")
    caller = await caller_of(request)
    route = request.scope["route"]
    status = route.status_code if isinstance(route, APIRoute) and route.status_code else 200
    container = api_state(request).container
    return Once(
        container.database,
        caller.actor.tenant,
        f"{caller.actor.user}:{caller.key_id}",
        idempotency_key,
        f"{request.method} {request.url.path}",
        status,
        container.settings.limits.idempotency_hours,
    )


OnceKey = Annotated[Once, Depends(_once)]
