"""A run's events over SSE, without gaps or doubles across dropped connections (WHATWG HTML, server-sent events)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from schemas.runs import TERMINAL_EVENTS
from services.cli.client import ApiClient, backoff, checked, path_of
from services.cli.failures import Refusal, Unreachable

SILENCE_S = 35.0
"""The server sends a comment every 10 s: three missed, and the connection is dead."""


@dataclass(frozen=True)
class StreamEvent:
    """`id` is `<epoch>.<seq>`; `data` is `{"withheld": true}` where its source may no longer be read, else the
    contract's object or list for its type.
    """

    id: str
    type: str
    data: Any

    @property
    def seq(self) -> int:
        return int(self.id.rpartition(".")[2] or 0)


def parse_events(chunks: Iterable[bytes]) -> Iterator[StreamEvent]:
    """Only CR, LF and CRLF end a line: text may hold U+2028 and the like, at which `str.splitlines` would cut."""
    event_id, event_type = "", ""
    data: list[str] = []
    for line in _lines(chunks):
        if not line:
            if data:
                yield StreamEvent(event_id, event_type or "message", json.loads("\n".join(data)))
            event_type, data = "", []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "id":
            event_id = value
        elif name == "event":
            event_type = value
        elif name == "data":
            data.append(value)


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    rest = b""
    for chunk in chunks:
        rest += chunk
        held = rest.endswith(b"\r")  # its LF may be in the next chunk
        text = rest[:-1] if held else rest
        *lines, rest = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        rest += b"\r" if held else b""
        yield from (line.decode("utf-8", errors="replace") for line in lines)


def follow_run(client: ApiClient, run_id: str) -> Iterator[StreamEvent]:
    """Every event up to the terminal one; resumes by Last-Event-ID until the server has been away for too long."""
    last: StreamEvent | None = None
    until, pauses = client.now() + client.patience_s, backoff()
    while True:
        failure: Exception | None = None
        try:
            for event in _connected(client, run_id, last):
                if last is not None and event.seq <= last.seq:
                    continue
                last = event
                until, pauses = client.now() + client.patience_s, backoff()
                yield event
                if event.type in TERMINAL_EVENTS:
                    return
        except (httpx.TransportError, httpx.StreamError) as error:
            failure = error
        except Refusal as refusal:
            if refusal.status not in (429, 502, 503, 504):
                raise
            failure = refusal
        pause = next(pauses)
        if client.now() + pause > until:
            raise _lost(client, run_id, failure)
        client.sleep(pause)


def _connected(client: ApiClient, run_id: str, last: StreamEvent | None) -> Iterator[StreamEvent]:
    headers = {} if last is None else {"Last-Event-ID": last.id}
    with client.stream(path_of("runs", run_id, "events"), headers, SILENCE_S) as response:
        if not response.is_success:
            response.read()
            checked(response)
        yield from parse_events(response.iter_bytes())


def _lost(client: ApiClient, run_id: str, error: Exception | None) -> Unreachable:
    return Unreachable(
        f"The connection to {client.connection.url} was lost and did not come back ({type(error).__name__}).",
        f"The work goes on in the server: `perdure runs watch {run_id}` shows it from the start.",
    )
