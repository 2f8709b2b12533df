"""A run's events read on a thread of its own, so that the command can listen to its user meanwhile."""

from __future__ import annotations

import queue
import threading

from services.cli.client import ApiClient
from services.cli.event_stream import StreamEvent, follow_run


class RunFollower:
    """Survives a server that comes back, as `follow_run` does; why it gave up is raised by `take`."""

    def __init__(self, client: ApiClient, run_id: str) -> None:
        self._client = client
        self._run_id = run_id
        self._come: queue.SimpleQueue[StreamEvent | Exception] = queue.SimpleQueue()
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        try:
            for event in follow_run(self._client, self._run_id):
                self._come.put(event)
        except Exception as error:  # raised where somebody can act on it
            self._come.put(error)

    def take(self) -> list[StreamEvent]:
        """The events that have come since the last call, oldest first."""
        events: list[StreamEvent] = []
        while not self._come.empty():
            come = self._come.get()
            if isinstance(come, Exception):
                if events:  # they come first; the failure stands after them
                    self._come.put(come)
                    return events
                raise come
            events.append(come)
        return events
