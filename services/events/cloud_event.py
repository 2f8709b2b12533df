"""A domain event as a CloudEvents 1.0 record in structured JSON mode.

What Kafka once holds cannot be taken out of it again. So the names that a document's events must hold for a rebuild,
and which are scrubbed when the document is removed, are never sent: consumers get ids, numbers and states.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from schemas.domain_events import EVENT_TYPES, DomainEvent, topic_of
from services.gateways.kafka_record import KafkaRecord

CONTENT_TYPE = b"application/cloudevents+json; charset=UTF-8"
TYPE_PREFIX = "perdure."
NEVER_SENT = frozenset({"title", "external_id", "url", "detail", "message", "heading"})
"""Fields that hold words of a document, or may quote it; at any depth."""


class Undecodable(ValueError):
    """A record that is no event of ours."""


class CloudEvent(BaseModel):
    """Attributes of CloudEvents 1.0.2, section 3; extension names are lower case letters, as its section 3.1 asks."""

    model_config = ConfigDict(extra="ignore")

    specversion: str = "1.0"
    id: str
    source: str
    type: str
    subject: str
    time: datetime
    datacontenttype: str = "application/json"
    tenant: str = Field(min_length=1)
    streamversion: int = Field(ge=1)
    position: int = Field(ge=1)
    actor: str | None = None
    correlation: str | None = None
    traceparent: str | None = None
    data: dict[str, Any]

    @field_validator("tenant")
    @classmethod
    def _one_tenant(cls, value: str) -> str:
        if value == "*":
            raise ValueError("an event belongs to one tenant")
        return value

    @field_validator("type")
    @classmethod
    def _known(cls, value: str) -> str:
        if value.removeprefix(TYPE_PREFIX) not in EVENT_TYPES:
            raise ValueError("unknown event type")
        return value

    @property
    def event_type(self) -> str:
        """The type as the event log names it."""
        return self.type.removeprefix(TYPE_PREFIX)


def record_of(event: DomainEvent) -> KafkaRecord:
    cloud_event = CloudEvent(
        id=f"{event.stream}/{event.stream_version}",
        source=f"/perdure/{event.tenant}",
        type=f"{TYPE_PREFIX}{event.type}",
        subject=event.stream,
        time=event.time,
        tenant=event.tenant,
        streamversion=event.stream_version,
        position=event.position,
        actor=event.actor,
        correlation=event.correlation,
        traceparent=event.traceparent,
        data=without_words(event.data),
    )
    return KafkaRecord(
        topic=topic_of(event.stream),
        key=event.stream.encode(),
        value=cloud_event.model_dump_json(exclude_none=True).encode(),
        headers=(("content-type", CONTENT_TYPE),),
    )


def decode(value: bytes) -> CloudEvent:
    """Raises Undecodable."""
    try:
        return CloudEvent.model_validate(json.loads(value))
    except (ValidationError, ValueError, RecursionError) as error:
        raise Undecodable(_reason(error)) from error


def without_words(data: Any) -> Any:
    """The data with every field of NEVER_SENT left out, at any depth."""
    if isinstance(data, dict):
        return {name: without_words(value) for name, value in data.items() if name not in NEVER_SENT}
    if isinstance(data, list):
        return [without_words(value) for value in data]
    return data


def _reason(error: Exception) -> str:
    """Names the fault, never the input: a reason is kept longer than what it speaks of."""
    if isinstance(error, ValidationError):
        first = error.errors(include_input=False, include_url=False)[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    return f"not JSON ({type(error).__name__})"
