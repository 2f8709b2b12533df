"""What one API process keeps in memory beside its container: limits and readiness, nothing that must survive."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from services.api.token_bucket import TokenBuckets
from services.container import Serving, Stream
from services.diagnostics import Readiness
from services.stores.database import Database


@dataclass
class ApiState:
    """Built once by `create_app`."""

    container: Stream
    requests_per_key: TokenBuckets
    failures_per_address: TokenBuckets
    readiness: Readiness
    streams_of_key: Counter[str] = field(default_factory=Counter)


def api_state(request: Request) -> ApiState:
    state = request.app.state.perdure
    assert isinstance(state, ApiState)
    return state


def _stream(request: Request) -> Stream:
    return api_state(request).container


def _serving(request: Request) -> Serving:
    """Routes that need indexes are mounted only where there are some."""
    container = api_state(request).container
    assert isinstance(container, Serving)
    return container


def _database(request: Request) -> Database:
    return api_state(request).container.database


StreamRole = Annotated[Stream, Depends(_stream)]
ServingRole = Annotated[Serving, Depends(_serving)]
DatabaseOf = Annotated[Database, Depends(_database)]
