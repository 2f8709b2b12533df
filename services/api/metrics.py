"""What Prometheus reads: requests as they end, and the queues as they are when it asks."""

from __future__ import annotations

import logging

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from schemas.errors import EngineDown
from services.container import Stream
from services.stores import operations_store

REQUESTS = Counter("perdure_http_requests", "Requests by route and status", ["method", "route", "status"])
LATENCY = Histogram(
    "perdure_http_request_seconds",
    "Time to the first byte of the reply",
    ["method", "route"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
AUTH_FAILURES = Counter("perdure_auth_failures", "Requests with a key that does not count")

logger = logging.getLogger(__name__)


async def exposition(container: Stream) -> bytes:
    """Everything in the text format. While Postgres is away, all but what it alone knows."""
    registry = CollectorRegistry()
    Gauge("perdure_sse_subscribers", "Open event streams", registry=registry).set(container.hub.watchers)
    listening = Gauge("perdure_hub_listening", "1 while events are heard at once", registry=registry)
    listening.set(container.hub.listening.is_set())
    try:
        await _queues(container, registry)
    except EngineDown:
        logger.warning("metrics without queues: Postgres is away")
    return generate_latest(REGISTRY) + generate_latest(registry)


async def _queues(container: Stream, registry: CollectorRegistry) -> None:
    async with container.database.every_tenant("operators look at all queues") as transaction:
        lags = await operations_store.outbox_lags(transaction)
        open_runs = await operations_store.open_runs(transaction)
    rows = Gauge("perdure_outbox_rows", "Rows not delivered yet", ["destination"], registry=registry)
    oldest = Gauge("perdure_outbox_oldest_seconds", "Age of the oldest of them", ["destination"], registry=registry)
    for lag in lags:
        rows.labels(lag.destination).set(lag.rows)
        oldest.labels(lag.destination).set(lag.oldest_s)
    runs = Gauge("perdure_open_runs", "Runs that have not ended", ["kind", "state"], registry=registry)
    for each in open_runs:
        runs.labels(each.kind, each.state).set(each.runs)


def create_metrics_app(container: Stream) -> Starlette:
    """The same text without a key, for the loopback port `PERDURE_METRICS_PORT`."""

    async def metrics(_: Request) -> Response:
        return Response(await exposition(container), media_type=CONTENT_TYPE_LATEST)

    return Starlette(routes=[Route("/metrics", metrics)])
