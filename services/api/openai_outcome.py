"""What a run has come to so far, from its events; and what its end is to a client of OpenAI's protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from schemas.answers import Citation
from schemas.errors import Problem
from schemas.runs import TEXT_EVENTS, RunEvent
from services.api.openai_errors import RunFailed

_STATUS_OF_CODE = {"context_length": 400, "agent_removed": 404, "engine_down": 503, "model_unavailable": 503}
_CODES = {"context_length": "context_length_exceeded"}


ASK_USER = "ask_user"
"""The tool whose request is a question: the words of the decision are the answer."""
_APPROVE = (
    "Waiting for somebody to approve `{tool}`: POST /v1/approvals/{id}/decision. The work goes on by itself after that."
)
_ANSWER = (
    "The agent asks: {question}\n"
    'Answer with POST /v1/approvals/{id}/decision and {{"decision": "approve", "feedback": "<your answer>"}}. '
    "The work goes on by itself after that."
)


class Withheld(Problem):
    """The text came from a document that this key may not read now (invariant 9)."""

    status, type, title = 403, "withheld", "The text may not be read with this key"


@dataclass
class Outcome:
    """`waiting_for` are the requests that nobody has decided, by their ids: what people are told of each."""

    text: str = ""
    thinking: str = ""
    citations: list[Citation] = field(default_factory=list)
    usage: dict[str, Any] = field(default_factory=dict)
    waiting_for: dict[str, str] = field(default_factory=dict)
    _newest_call: dict[str, Any] = field(default_factory=dict)
    succeeded: bool = False

    def apply(self, event: RunEvent) -> None:
        """Withheld when the event may not be read, RunFailed when it says that the run came to nothing."""
        data = event.data
        if event.type in TEXT_EVENTS and isinstance(data, dict) and data.get("withheld"):
            raise Withheld("This came from a document that this key may not read now, so its text is not shown.")
        match event.type:
            case "thinking":
                self.thinking += data["text"]
            case "answer.text":
                self.text = data["text"]
            case "citations":
                self.citations = [Citation.model_validate(each) for each in data]
            case "usage":
                self.usage = data
            case "tool.call":
                self._newest_call = data
            case "approval.requested":
                self.waiting_for[data["approval_id"]] = self._request(data["approval_id"], data["tool"])
            case "approval.decided":
                self.waiting_for.pop(data["approval_id"], None)
            case "run.succeeded":
                self.succeeded = True
            case "run.failed" | "run.cancelled" | "run.expired":
                raise failure(event)

    def _request(self, approval_id: str, tool: str) -> str:
        """The call that it is about was told just before."""
        question = (self._newest_call.get("arguments") or {}).get("question")
        if tool == ASK_USER and isinstance(question, str):
            return _ANSWER.format(question=question, id=approval_id)
        return _APPROVE.format(tool=tool, id=approval_id)

    @property
    def tokens(self) -> tuple[int, int]:
        """(read, written)"""
        return int(self.usage.get("input_tokens") or 0), int(self.usage.get("output_tokens") or 0)

    @property
    def finish(self) -> Literal["stop", "length"]:
        return "length" if self.usage.get("finish_reason") == "length" else "stop"


def failure(event: RunEvent) -> RunFailed:
    """By its code; what the same request would meet again is 422, what may pass is 503."""
    if event.type == "run.cancelled":
        return RunFailed("The run was cancelled.", type="cancelled", status=409, run_id=event.run_id)
    if event.type == "run.expired":
        return RunFailed("The run was not done in time and is over.", type="expired", status=504, run_id=event.run_id)
    code = str(event.data.get("code") or "failed")
    status = _STATUS_OF_CODE.get(code, 503 if event.data.get("retryable") else 422)
    detail = str(event.data.get("detail") or "The run failed").rstrip(".")
    return RunFailed(f"{detail}.", type=_CODES.get(code, code), status=status, run_id=event.run_id)


def settled(events: Sequence[RunEvent]) -> list[RunEvent]:
    """The events of a run without the text that was to be forgotten, and without the thoughts that led to it. Where the whole
    text stands, its pieces are not needed."""
    kept: list[RunEvent] = []
    for event in events:
        if event.type != "answer.reset":
            kept.append(event)
            continue
        tools = [place for place, each in enumerate(kept) if each.type.startswith("tool.")]
        step = tools[-1] if tools else -1
        kept = [
            each
            for place, each in enumerate(kept)
            if each.type != "token" and (each.type != "thinking" or place < step)
        ]
    if any(event.type == "answer.text" for event in kept):
        return [event for event in kept if event.type != "token"]
    return kept
