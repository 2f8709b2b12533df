"""One server span per request in the current OpenTelemetry context (W3C Trace Context).

Without a configured SDK spans are not recorded, yet ids are still made: so a run's events and workflow carry one trace id
either way. Whoever needs it below injects from the current context.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import context, trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

_PROPAGATOR = TraceContextTextMapPropagator()
_TRACER = trace.get_tracer("perdure.api")


@contextmanager
def server_span(name: str, headers: dict[str, str]) -> Iterator[trace.Span]:
    """Goes on with the caller's trace, or begins one. A malformed `traceparent` counts as none."""
    parent = _PROPAGATOR.extract(headers)
    span = _TRACER.start_span(name, context=parent, kind=SpanKind.SERVER)
    if not span.is_recording():
        span = NonRecordingSpan(_made_context(trace.get_current_span(parent).get_span_context()))
    token = context.attach(trace.set_span_in_context(span, parent))
    try:
        yield span
    finally:
        span.end()
        context.detach(token)


def _made_context(parent: SpanContext) -> SpanContext:
    return SpanContext(
        trace_id=parent.trace_id if parent.is_valid else secrets.randbits(127) + 1,
        span_id=secrets.randbits(63) + 1,
        is_remote=False,
        trace_flags=parent.trace_flags if parent.is_valid else TraceFlags(TraceFlags.SAMPLED),
        trace_state=parent.trace_state,
    )


def traceparent_of(span: trace.Span) -> str:
    ids = span.get_span_context()
    return f"00-{ids.trace_id:032x}-{ids.span_id:016x}-{int(ids.trace_flags):02x}"
