"""Keeps the audit log from the events of all topics."""

from __future__ import annotations

from collections.abc import Sequence

from services.events.cloud_event import CloudEvent, without_words
from services.gateways.kafka_topics import EVENT_TOPICS
from services.stores import audit_store
from services.stores.audit_store import AuditRow
from services.stores.database import Transaction


class AuditLog:
    """One row per event. `services/consumers/consumption.py` decides which events come here, and how often."""

    name = "audit_log"
    topics = EVENT_TOPICS

    async def apply(self, transaction: Transaction, events: Sequence[CloudEvent]) -> None:
        await audit_store.write(transaction, [_row(event) for event in events])
        documents = {event.subject for event in events if event.subject.startswith("document:")}
        if documents:
            await audit_store.scrub_removed(transaction, documents)


def _row(event: CloudEvent) -> AuditRow:
    return AuditRow(
        stream=event.subject,
        stream_version=event.streamversion,
        type=event.event_type,
        actor=event.actor,
        data=without_words(event.data),
        at=event.time,
    )
