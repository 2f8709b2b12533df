"""Domain events: what they are called, which stream they belong to, which topic carries them.

An event's data holds the new values of the columns it changes, ids and references, never text. So the read models are
the events replayed (invariant 2), and `services/stores/projections.py` is both the live path and the rebuild.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

Topic = Literal["perdure.documents", "perdure.runs", "perdure.approvals", "perdure.access"]

TOPIC_OF_STREAM: dict[str, Topic] = {
    "document": "perdure.documents",
    "run": "perdure.runs",
    "approval": "perdure.approvals",
    "space": "perdure.access",
    "user": "perdure.access",
    "group": "perdure.access",
    "key": "perdure.access",
}

DOCUMENT_EVENTS = (
    "document.received", "document.retried", "document.staged", "document.parsed", "document.published",
    "document.enriched", "document.ready", "document.failed", "document.cancelled", "document.superseded",
    "document.readers_changed", "document.tags_changed", "document.removing", "document.removed",
)  # fmt: skip
RUN_EVENTS = (
    "run.queued", "run.started", "run.waiting", "run.resumed", "run.cancel_requested", "run.ended",
)  # fmt: skip
APPROVAL_EVENTS = (
    "approval.requested", "approval.decided", "approval.expired", "approval.cancelled", "approval.effect_unknown",
    "approval.effect_known",
)  # fmt: skip
ACCESS_EVENTS = (
    "space.created", "space.removed", "user.created", "user.changed", "group.created", "group.removed",
    "group.member_added", "group.member_removed", "grant.given", "grant.taken", "key.created", "key.revoked",
)  # fmt: skip
SCRUBBED_FIELDS = ("external_id", "title", "tags", "url", "readers", "owner", "warnings", "error")
"""What an event about a document may name; taken out of its events and audit rows when it is removed."""

EVENT_TYPES = frozenset(DOCUMENT_EVENTS + RUN_EVENTS + APPROVAL_EVENTS + ACCESS_EVENTS)


def topic_of(stream: str) -> Topic:
    return TOPIC_OF_STREAM[stream.partition(":")[0]]


class EventDraft(BaseModel):
    """An event about to be written. `cause` is the position of the event or the id of the run that led to it."""

    stream: str
    type: str
    data: dict[str, Any] = Field(default_factory=dict)
    cause: str | None = None


class DomainEvent(BaseModel):
    """An event as it stands in the log."""

    position: int
    tenant: str
    stream: str
    stream_version: int
    type: str
    schema_version: int = 1
    data: dict[str, Any]
    actor: str | None = None
    cause: str | None = None
    correlation: str | None = None
    traceparent: str | None = None
    time: datetime
