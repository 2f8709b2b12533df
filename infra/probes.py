"""One probe per engine, for readiness and `perdure doctor`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from infra.wiring import Engines
from services.container import EngineProbe
from services.gateways.kafka_publisher import KafkaPublisher

_LOGS = "look at its log in the data directory's logs/ folder"


def probes_of(engines: Engines, publisher: KafkaPublisher) -> list[EngineProbe]:
    settings = engines.settings
    return [
        _probe("postgres", engines.database.ping, settings.database_url is None, needed=True),
        _probe("temporal", engines.temporal.ping, settings.temporal_address is None, needed=True),
        _probe("vectors", engines.vectors.ping, settings.qdrant_url is None, needed=True),
        _probe("keywords", engines.keywords.ping, settings.elasticsearch_url is None, needed=True),
        _probe("kafka", publisher.ping, settings.kafka_bootstrap is None, needed=False),
        EngineProbe("embedding model", _named(engines.model.name), "set PERDURE_EMBEDDING_MODEL", needed=False),
        EngineProbe("chat model", _named(settings.chat_model), "set PERDURE_CHAT_MODEL", needed=False),
    ]


def _probe(name: str, ping: Callable[[], Awaitable[None]], embedded: bool, *, needed: bool) -> EngineProbe:
    async def check() -> str:
        await ping()
        return "embedded, answers" if embedded else "answers"

    return EngineProbe(name, check, f"{name}: {_LOGS}" if embedded else f"check the address of {name}", needed=needed)


def _named(name: str) -> Callable[[], Awaitable[str]]:
    async def check() -> str:
        return name

    return check
