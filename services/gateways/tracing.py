"""The W3C trace context of what is going on now, as rows and events carry it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

_PROPAGATOR = TraceContextTextMapPropagator()


def current_traceparent() -> str | None:
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier)
    return carrier.get("traceparent")


@contextmanager
def continued(traceparent: str | None) -> Iterator[None]:
    """Goes on with a trace that a row carried, for example when the relay starts what a request asked for."""
    if not traceparent:
        yield
        return
    token = context.attach(_PROPAGATOR.extract({"traceparent": traceparent}))
    try:
        yield
    finally:
        context.detach(token)
