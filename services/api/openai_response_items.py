"""The items of a response's output: what they hold, and the events that tell of them while they grow.

A response has one message, the whole text of the run, however many calls lie in between: so its text is the stored answer, and
annotations point into it. Calls that an agent made are `mcp_call` items of the server `perdure`: made here, never for the client
to run. Thoughts are `reasoning` items.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from schemas.answers import Citation
from services.retrieval.citation_marks import MARK

SERVER_LABEL = "perdure"
Told = tuple[str, dict[str, Any]]
"""An event's type and its fields."""


@dataclass
class Items:
    """Items in the order in which they began. Each method gives the events that tell of what it did."""

    run_id: str
    _items: list[dict[str, Any]] = field(default_factory=list)
    _message: int | None = None
    _reasoning: int | None = None
    _calls: dict[str, int] = field(default_factory=dict)
    _newest_call: int | None = None

    def output(self) -> list[dict[str, Any]]:
        """As a finished response shows them: requests for approval have been decided by then."""
        return [item for item in self._items if item["type"] != "mcp_approval_request"]

    # thoughts

    def think(self, text: str) -> Iterator[Told]:
        if self._reasoning is None:
            item: dict[str, Any] = {
                "type": "reasoning",
                "id": self._name("rs"),
                "summary": [],
                "content": [],
                "status": "in_progress",
            }
            self._reasoning = yield from self._add(item)
            item["content"].append({"type": "reasoning_text", "text": ""})
            yield "response.content_part.added", self._part(self._reasoning, {"type": "reasoning_text", "text": ""})
        self._items[self._reasoning]["content"][0]["text"] += text
        yield "response.reasoning_text.delta", {**self._place(self._reasoning), "content_index": 0, "delta": text}

    def stop_thinking(self) -> Iterator[Told]:
        if self._reasoning is None:
            return
        place, self._reasoning = self._reasoning, None
        content = self._items[place]["content"][0]
        yield "response.reasoning_text.done", {**self._place(place), "content_index": 0, "text": content["text"]}
        yield "response.content_part.done", self._part(place, content)
        yield from self._done(place, status="completed")

    # calls

    def call(self, data: dict[str, Any]) -> Iterator[Told]:
        arguments = json.dumps(data["arguments"], ensure_ascii=False)
        item = {
            "type": "mcp_call",
            "id": self._name("mcp"),
            "server_label": SERVER_LABEL,
            "name": data["tool"],
            "arguments": arguments,
            "approval_request_id": None,
            "output": None,
            "error": None,
            "status": "in_progress",
        }
        place = self._newest_call = self._calls[data["call_id"]] = yield from self._add(item)
        yield "response.mcp_call.in_progress", self._place(place)
        yield "response.mcp_call_arguments.done", {**self._place(place), "arguments": arguments}

    def result(self, data: dict[str, Any]) -> Iterator[Told]:
        """What a call came to, in the words of its summary."""
        place = self._calls.pop(data["call_id"], None)
        if place is None:
            return
        if data["ok"]:
            yield "response.mcp_call.completed", self._place(place)
            yield from self._done(place, status="completed", output=data["summary"])
        else:
            yield "response.mcp_call.failed", self._place(place)
            error = {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": data["summary"]}]}
            yield from self._done(place, status="failed", error=error)

    def ask_approval(self, data: dict[str, Any]) -> Iterator[Told]:
        """It belongs to the call that was told just before."""
        call = self._items[self._newest_call] if self._newest_call is not None else {}
        call["approval_request_id"] = data["approval_id"]
        item = {
            "type": "mcp_approval_request",
            "id": data["approval_id"],
            "server_label": SERVER_LABEL,
            "name": data["tool"],
            "arguments": call.get("arguments", "{}"),
        }
        place = yield from self._add(item)
        yield from self._done(place)

    # text

    def write(self, text: str) -> Iterator[Told]:
        if not text:
            return
        place = yield from self._open_message()
        self._items[place]["content"][0]["text"] += text
        yield (
            "response.output_text.delta",
            {**self._place(place), "content_index": 0, "delta": text, "logprobs": []},
        )

    def end_message(self, text: str, citations: Sequence[Citation], status: str = "completed") -> Iterator[Told]:
        """`text` is what stands, marks of the last check included."""
        if self._message is None and not text:
            return
        place = yield from self._open_message()
        content = self._items[place]["content"][0]
        content["text"] = text
        for index, annotation in enumerate(annotations_of(text, citations)):
            content["annotations"].append(annotation)
            told = {"content_index": 0, "annotation_index": index, "annotation": annotation}
            yield "response.output_text.annotation.added", {**self._place(place), **told}
        yield "response.output_text.done", {**self._place(place), "content_index": 0, "text": text, "logprobs": []}
        yield "response.content_part.done", self._part(place, content)
        yield from self._done(place, status=status)

    def break_off(self) -> Iterator[Told]:
        """What is still open stays as it is."""
        yield from self.stop_thinking()
        for place in self._calls.values():
            yield from self._done(place, status="incomplete")
        if self._message is not None:
            yield from self.end_message(self._items[self._message]["content"][0]["text"], [], status="incomplete")

    def _open_message(self) -> Any:
        if self._message is None:
            item: dict[str, Any] = {
                "type": "message",
                "id": f"msg_{self.run_id}",
                "role": "assistant",
                "content": [],
                "status": "in_progress",
            }
            self._message = yield from self._add(item)
            item["content"] = [{"type": "output_text", "text": "", "annotations": [], "logprobs": []}]
            yield "response.content_part.added", self._part(self._message, item["content"][0])
        return self._message

    # what events hold

    def _add(self, item: dict[str, Any]) -> Any:
        self._items.append(item)
        place = len(self._items) - 1
        yield "response.output_item.added", {"output_index": place, "item": _copy(item)}
        return place

    def _done(self, place: int, **fields: Any) -> Iterator[Told]:
        self._items[place] |= fields
        yield "response.output_item.done", {"output_index": place, "item": _copy(self._items[place])}

    def _place(self, place: int) -> dict[str, Any]:
        return {"output_index": place, "item_id": self._items[place]["id"]}

    def _part(self, place: int, part: dict[str, Any]) -> dict[str, Any]:
        return {**self._place(place), "content_index": 0, "part": _copy(part)}

    def _name(self, kind: str) -> str:
        return f"{kind}_{self.run_id}_{len(self._items)}"


def annotations_of(text: str, citations: Sequence[Citation]) -> list[dict[str, Any]]:
    """One for each mark in the text: `index` is where it stands; the citation's own fields say what it stands for."""
    known = {citation.n: citation for citation in citations}
    found: list[dict[str, Any]] = []
    for mark in MARK.finditer(text):
        citation = known.get(int(mark.group(1)))
        if citation is not None:
            name = citation.title or citation.document_id
            file = {"type": "file_citation", "index": mark.start(), "file_id": citation.document_id, "filename": name}
            found.append({**citation.model_dump(mode="json"), **file})
    return found


def _copy(item: dict[str, Any]) -> dict[str, Any]:
    """An event holds the item as it was then."""
    copied: dict[str, Any] = json.loads(json.dumps(item))
    return copied
