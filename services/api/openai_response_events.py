"""A run in the words of the Responses protocol: its events, and the response as it stands."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from schemas.errors import Problem
from schemas.openai_protocol import ResponseError, ResponseObject, ResponseRequest, ResponseUsage
from schemas.runs import RunEvent
from services.api.openai_outcome import Outcome, Withheld
from services.api.openai_response_items import Items, Told
from services.api.openai_starting import RESPONSE_PREFIX
from services.api.openai_text import SentText

Status = Literal["in_progress", "completed", "failed", "cancelled"]
ERROR_CODE = "server_error"
"""The one of the protocol's codes that fits; our own stands at the head of the message."""


class ResponseTelling:
    """One run's response; give it the run's events in their order. `asked` is null when it is read again."""

    def __init__(self, run_id: str, model: str, created: int, asked: ResponseRequest | None = None) -> None:
        self._run_id = run_id
        self._model = model
        self._created = created
        self._asked = asked
        self._status: Status = "in_progress"
        self._error: ResponseError | None = None
        self._withheld = False
        self._outcome = Outcome()
        self._sent = SentText(run_id)
        self._items = Items(run_id)
        self._numbered = 0

    def begin(self) -> bytes:
        return self._frames([self._whole("response.created"), self._whole("response.in_progress")])

    def apply(self, event: RunEvent) -> bytes:
        self._outcome.apply(event)
        return self._frames(self._told(event))

    def fail(self, problem: Problem) -> bytes:
        self._status = "cancelled" if problem.type == "cancelled" else "failed"
        self._error = ResponseError(code=ERROR_CODE, message=f"{problem.type}: {problem.detail}")
        return self._frames([*self._items.break_off(), self._whole("response.failed")])

    def withhold(self) -> None:
        """For a response that is read again: it is there, and its text may not be read with this key."""
        self._withheld = True
        self._status = "completed"

    def snapshot(self) -> ResponseObject:
        asked, outcome = self._asked, self._outcome
        read, written = outcome.tokens
        usage = ResponseUsage(input_tokens=read, output_tokens=written, total_tokens=read + written)
        return ResponseObject(
            id=f"{RESPONSE_PREFIX}{self._run_id}",
            created_at=self._created,
            status=self._status,
            background=bool(asked and asked.background),
            error=self._error,
            instructions=asked.instructions if asked else None,
            metadata=(asked.metadata or {}) if asked else {},
            model=self._model,
            output=[] if self._withheld else self._items.output(),
            previous_response_id=asked.previous_response_id if asked else None,
            usage=usage if outcome.usage else None,
            run_id=self._run_id,
            withheld=self._withheld,
        )

    def _told(self, event: RunEvent) -> Iterator[Told]:
        data, items = event.data, self._items
        match event.type:
            case "thinking":
                yield from items.think(data["text"])
            case "token":
                yield from items.stop_thinking()
                yield from items.write(self._sent.add(data["text"]))
            case "answer.reset":
                yield from items.stop_thinking()
                self._sent.begin_again()
            case "answer.text":
                yield from items.stop_thinking()
                yield from items.write(self._sent.finish(data["text"])[0])
            case "tool.call":
                yield from items.stop_thinking()
                yield from items.call(data)
            case "tool.result":
                yield from items.result(data)
            case "approval.requested":
                yield from items.ask_approval(data)
            case "run.succeeded":
                yield from items.end_message(self._outcome.text, self._outcome.citations)
                self._status = "completed"
                yield self._whole("response.completed")

    def _whole(self, type: str) -> Told:
        return type, {"response": self.snapshot().model_dump(mode="json")}

    def _frames(self, told: Iterable[Told]) -> bytes:
        return b"".join(self._frame(type, fields) for type, fields in told)

    def _frame(self, type: str, fields: dict[str, Any]) -> bytes:
        data = {"type": type, "sequence_number": self._numbered, **fields}
        self._numbered += 1
        return f"event: {type}\ndata: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()


def read_again(telling: ResponseTelling, events: Iterable[RunEvent]) -> ResponseObject:
    """A response from the stored events of its run."""
    try:
        for event in events:
            telling.apply(event)
    except Withheld:
        telling.withhold()
    except Problem as problem:
        telling.fail(problem)
    return telling.snapshot()
