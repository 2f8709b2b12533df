"""Notices that a broker has lost what was sent to it: the embedded one keeps nothing over a restart.

The marker is a topic that the relay alone makes. A broker gives every topic an id of its own when it is made (KIP-516),
so a marker that is missing, or has another id than before, means that all else is gone too. One metadata request
tells, where a record in the topic would need a consumer of its own.
"""

from __future__ import annotations

import asyncio
import contextlib

from schemas.errors import EngineDown
from services.gateways.kafka_topics import KafkaTopics

MARKER_TOPIC = "perdure.marker"


class KafkaMarker:
    """One per relay. Its methods must not run side by side."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._topics: KafkaTopics | None = None
        self._known_id: str | None = None

    async def has_forgotten(self) -> bool:
        """True once after the broker lost its records, and for a broker that has never seen a relay. Raises EngineDown."""
        try:
            return await asyncio.to_thread(self._look)
        except EngineDown:
            self._topics = None
            raise

    async def close(self) -> None:
        topics, self._topics = self._topics, None
        if topics is not None:
            with contextlib.suppress(EngineDown):
                await asyncio.to_thread(topics.close)

    def _look(self) -> bool:
        if self._topics is None:
            self._topics = KafkaTopics(self._bootstrap)
        found = self._topics.topic_id(MARKER_TOPIC)
        made = found is None and MARKER_TOPIC in self._topics.create({MARKER_TOPIC: 1})
        if found is None:
            found = self._topics.topic_id(MARKER_TOPIC)
        known, self._known_id = self._known_id, found
        return made or (known is not None and found != known)
