"""Logs and traces of a process. Logs are JSON lines on stderr with run, tenant and trace; traces go nowhere until
OTEL_EXPORTER_OTLP_ENDPOINT is set."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any

import structlog
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from temporalio.contrib.opentelemetry import create_tracer_provider

OTLP_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


def configure_logs(level: str) -> None:
    """structlog and the standard library's loggers through one JSON renderer."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_trace,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(ensure_ascii=False),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for noisy in ("httpx", "httpcore", "uvicorn.access", "temporalio.activity"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, root.level))
    for hopeless in ("kafka", "aiokafka"):  # a line per retry while the broker is away; our own parts say it once
        logging.getLogger(hopeless).setLevel(logging.CRITICAL)


def _add_trace(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    span = trace.get_current_span().get_span_context()
    if span.is_valid:
        event["trace_id"] = f"{span.trace_id:032x}"
    return event


def configure_traces(environ: Mapping[str, str], role: str) -> None:
    """Replay-safe ids always, so that a workflow replayed makes no second span; an exporter only when asked for."""
    provider = create_tracer_provider(resource=Resource.create({"service.name": f"perdure-{role}"}))
    if environ.get(OTLP_ENDPOINT):
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
