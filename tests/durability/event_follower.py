"""A client of a run's event stream that never gives up: over cuts, kills and new addresses, by Last-Event-ID alone."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from schemas.runs import TERMINAL_EVENTS
from tests.running.processes import PerdureProcess

RETRY_S = 0.05


@dataclass(frozen=True)
class Event:
    epoch: int
    seq: int
    type: str
    data: Any


class EventFollower:
    """Follows in a thread until the terminal event. `cut_after`: hangs up by itself after so many events each time."""

    def __init__(self, perdure: PerdureProcess, run_id: str, *, cut_after: int | None = None) -> None:
        self._perdure = perdure
        self._run_id = run_id
        self._cut_after = cut_after
        self._ended = threading.Event()
        self._gone = threading.Event()
        self.events: list[Event] = []
        self.connections = 0
        self.refused: list[int] = []
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def wait(self, within_s: float = 150) -> None:
        assert self._ended.wait(within_s), f"no terminal event; had {[event.type for event in self.events]}"

    def leave(self) -> None:
        self._gone.set()
        self._thread.join(5)

    @property
    def text(self) -> str:
        """What a person sees: deltas gathered, forgotten at a reset, replaced by `answer.text`."""
        shown = ""
        for event in self.events:
            if event.type == "answer.reset":
                shown = ""
            elif event.type == "answer.text":
                shown = event.data["text"]
            elif event.type == "token":
                shown += event.data["text"]
        return shown

    def assert_whole(self) -> None:
        """Every event once and in order, epochs raised by resets alone, one terminal event, and that one last."""
        assert [event.seq for event in self.events] == list(range(1, len(self.events) + 1))
        epoch = self.events[0].epoch
        for event in self.events:
            epoch += event.type == "answer.reset"
            assert event.epoch == epoch, event
        assert [event.type in TERMINAL_EVENTS for event in self.events].count(True) == 1
        assert self.events[-1].type in TERMINAL_EVENTS
        assert not self.refused

    def _follow(self) -> None:
        while not self._ended.is_set() and not self._gone.is_set():
            try:
                self._connect()
            except (httpx.TransportError, KeyError):
                self._gone.wait(RETRY_S)

    def _connect(self) -> None:
        headers = {"Authorization": f"Bearer {self._perdure.key}"}
        if self.events:
            headers["Last-Event-ID"] = f"{self.events[-1].epoch}.{self.events[-1].seq}"
        url = f"{self._perdure.url}/v1/runs/{self._run_id}/events"
        with httpx.stream("GET", url, headers=headers, timeout=15, trust_env=False) as response:
            if response.status_code != 200:
                if response.status_code < 500:
                    self.refused.append(response.status_code)
                self._gone.wait(RETRY_S)
                return
            self.connections += 1
            for number, event in enumerate(_events(response.iter_lines()), start=1):
                self.events.append(event)
                if event.type in TERMINAL_EVENTS:
                    self._ended.set()
                    return
                if self._gone.is_set() or number == self._cut_after:
                    return


def _events(lines: Iterator[str]) -> Iterator[Event]:
    fields: dict[str, str] = {}
    for line in lines:
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            epoch, _, seq = fields["id"].partition(".")
            yield Event(int(epoch), int(seq), fields["event"], json.loads(fields["data"]))
            fields = {}
