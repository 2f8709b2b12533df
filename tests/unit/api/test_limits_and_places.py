"""Token buckets, cursors, event ids and trace contexts."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from services.api.event_stream import seq_of
from services.api.pagination import PageRequest
from services.api.problems import Malformed
from services.api.token_bucket import TokenBuckets
from services.api.trace_context import server_span, traceparent_of
from services.gateways.tracing import current_traceparent


class Item(BaseModel):
    """Something in a list."""

    id: str


def test_a_bucket_gives_its_tokens_at_once_and_gets_them_back_evenly() -> None:
    now = 0.0
    buckets = TokenBuckets(per_minute=6, clock=lambda: now)
    assert [buckets.take("a") for _ in range(6)] == [0.0] * 6
    assert buckets.take("a") == pytest.approx(10)
    assert buckets.take("b") == 0.0
    now = 10.0
    assert buckets.take("a") == 0.0
    assert buckets.take("a") == pytest.approx(10)


def test_pages_lead_through_a_list_to_its_end() -> None:
    items = [Item(id=str(number)) for number in range(5)]
    seen: list[str] = []
    cursor = None
    while True:
        request = PageRequest("/v1/things", 2, cursor)
        start = int(request.after_text() or -1) + 1
        page = request.page(items[start : start + request.fetch], lambda item: item.id)
        seen += [item.id for item in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == ["0", "1", "2", "3", "4"]


def test_a_cursor_is_good_for_its_own_list_alone() -> None:
    cursor = PageRequest("/v1/a", 1, None).page([Item(id="x"), Item(id="y")], lambda item: item.id).next_cursor
    assert PageRequest("/v1/a", 1, cursor).place == "x"
    for path, bad in (("/v1/b", cursor), ("/v1/a", "!"), ("/v1/a", ""), ("/v1/a", "e30"), ("/v1/a", "W1tbW1tb")):
        with pytest.raises(Malformed):
            PageRequest(path, 1, bad)
    with pytest.raises(Malformed):
        PageRequest("/v1/a", 1, cursor).after_number()


@pytest.mark.parametrize(("event_id", "seq"), [(None, 0), ("", 0), ("0.7", 7), ("12.7", 7), ("7", 7), (" 3.9 ", 9)])
def test_an_event_id_names_its_place(event_id: str | None, seq: int) -> None:
    assert seq_of(event_id) == seq


@pytest.mark.parametrize("event_id", ["a", "1.", ".1", "-1", "1.2.3", "٣", "1 2", "1.99999999999999999999"])
def test_an_event_id_that_is_none_is_refused(event_id: str) -> None:
    with pytest.raises(Malformed):
        seq_of(event_id)


def test_a_request_goes_on_with_the_trace_it_brings_or_begins_one() -> None:
    brought = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    with server_span("GET", {"traceparent": brought}) as span:
        assert traceparent_of(span).split("-")[1] == brought.split("-")[1]
        assert traceparent_of(span).split("-")[2] != brought.split("-")[2]
        assert current_traceparent() == traceparent_of(span)
    for none in ({}, {"traceparent": "00-0-0-01"}, {"traceparent": "x" * 1_000}):
        with server_span("GET", none) as span:
            assert current_traceparent() == traceparent_of(span)
    assert current_traceparent() is None
