from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from schemas.domain_events import DomainEvent
from services.events import cloud_event
from services.events.cloud_event import Undecodable

EVENT = DomainEvent(
    position=7,
    tenant="acme",
    stream="document:d1",
    stream_version=3,
    type="document.failed",
    data={
        "version": 2,
        "title": "Payroll",
        "external_id": "payroll.xlsx",
        "url": "https://intranet/payroll",
        "tags": ["hr"],
        "error": {"code": "corrupt", "detail": "the sheet 'Salaries' is damaged", "retryable": False},
        "warnings": [{"code": "hidden", "detail": "Salaries"}],
        "waiting_for": None,
    },
    actor="ada",
    correlation="run-1",
    traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    time=datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC),
)


def test_an_event_becomes_a_structured_cloud_event() -> None:
    record = cloud_event.record_of(EVENT)
    assert (record.topic, record.key) == ("perdure.documents", b"document:d1")
    assert dict(record.headers)["content-type"].startswith(b"application/cloudevents+json")
    sent = json.loads(record.value)
    data = sent.pop("data")
    assert sent == {
        "specversion": "1.0",
        "id": "document:d1/3",
        "source": "/perdure/acme",
        "type": "perdure.document.failed",
        "subject": "document:d1",
        "time": "2031-05-06T07:08:09Z",
        "datacontenttype": "application/json",
        "tenant": "acme",
        "streamversion": 3,
        "position": 7,
        "actor": "ada",
        "correlation": "run-1",
        "traceparent": EVENT.traceparent,
    }
    assert data == {
        "version": 2,
        "tags": ["hr"],
        "error": {"code": "corrupt", "retryable": False},
        "warnings": [{"code": "hidden"}],
        "waiting_for": None,
    }


def test_what_was_sent_can_be_read_again() -> None:
    event = cloud_event.decode(cloud_event.record_of(EVENT).value)
    assert (event.event_type, event.subject, event.streamversion, event.time) == (
        "document.failed", "document:d1", 3, EVENT.time,
    )  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [{"tenant": "*"}, {"tenant": ""}, {"type": "perdure.document.exploded"}, {"streamversion": 0}, {"data": "secret"}],
)
def test_a_record_that_is_no_event_of_ours_is_refused_without_quoting_it(change: dict[str, object]) -> None:
    sent = json.loads(cloud_event.record_of(EVENT).value) | change
    with pytest.raises(Undecodable) as refused:
        cloud_event.decode(json.dumps(sent).encode())
    assert "secret" not in str(refused.value)
