"""Server-sent events as the WHATWG standard cuts them, and a run followed over broken connections."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from services.cli.client import ApiClient
from services.cli.connection import Connection
from services.cli.event_stream import StreamEvent, follow_run, parse_events
from tests.unit.cli.contract_server import KEY, ContractServer

WIRE = (
    ': a comment\r\n\r\nid: 1.1\nevent: token\ndata: {"text": "a\u2028b\x85c"}\n\n'
    'id: 1.2\revent: token\rdata: {"text":\rdata: "two lines"}\r\rid: 1.3\r\nevent: run.succeeded\r\ndata: {}\r\n\r\n'
    'id: 1.4\nevent: token\ndata: {"text": "cut'
).encode()
EXPECTED = [
    StreamEvent("1.1", "token", {"text": "a\u2028b\x85c"}),
    StreamEvent("1.2", "token", {"text": "two lines"}),
    StreamEvent("1.3", "run.succeeded", {}),
]


@given(st.sets(st.integers(1, len(WIRE) - 1)))
def test_events_are_the_same_however_the_bytes_arrive(cuts: set[int]) -> None:
    edges = [0, *sorted(cuts), len(WIRE)]
    chunks = [WIRE[start:end] for start, end in pairwise(edges)]
    assert list(parse_events(chunks)) == EXPECTED


def test_a_server_that_sends_too_much_again_doubles_nothing(server: ContractServer) -> None:
    server.events = [("1.1", "token", {"text": "a"}), ("1.2", "token", {"text": "b"}), ("1.2", "token", {"text": "b"}),
                     ("1.3", "run.succeeded", {})]  # fmt: skip
    with ApiClient(Connection(server.url, KEY, "")) as client:
        assert [event.id for event in follow_run(client, "r1")] == ["1.1", "1.2", "1.3"]


def test_a_stream_that_ends_quietly_is_opened_again(server: ContractServer) -> None:
    server.events = [("1.1", "token", {"text": "a"})]
    pauses: list[float] = []

    def the_run_ends_meanwhile(seconds: float) -> None:
        pauses.append(seconds)
        server.events.append(("1.2", "run.succeeded", {}))

    with ApiClient(Connection(server.url, KEY, ""), sleep=the_run_ends_meanwhile) as client:
        assert [event.id for event in follow_run(client, "r1")] == ["1.1", "1.2"]
    assert len(pauses) == 1
