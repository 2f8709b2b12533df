"""A turn as its events make it: an answer's text, sources and end, with thinking, calls and requests for approval."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from services.cli.answer_draft import AnswerDraft
from services.cli.event_stream import StreamEvent


@dataclass
class CallDraft:
    """One call; `ok` is null until its result is there."""

    tool: str
    arguments: dict[str, Any]
    ok: bool | None = None
    summary: str = ""
    is_unknown: bool = False


@dataclass
class TurnDraft(AnswerDraft):
    """`thinking` is that of the reply under way; `approvals` maps ids to {id, tool, state}."""

    thinking: str = ""
    calls: dict[str, CallDraft] = field(default_factory=dict)
    approvals: dict[str, dict[str, str]] = field(default_factory=dict)
    usage: dict[str, Any] | None = None

    def apply(self, event: StreamEvent) -> None:
        super().apply(event)
        data = event.data
        if isinstance(data, dict) and data.get("withheld"):
            return
        match event.type:
            case "run.started":
                self.stage = "thinking"
            case "token":
                self.stage = "writing"
            case "thinking":
                self.stage = "thinking"
                self.thinking += data["text"]
            case "answer.reset":
                self.thinking = ""
            case "tool.call":
                self.thinking = ""
                self.calls[data["call_id"]] = CallDraft(data["tool"], data["arguments"])
            case "tool.result":
                self.stage = "thinking"
                self._result(data)
            case "approval.requested":
                asked = {"id": data["approval_id"], "tool": data["tool"], "state": "pending"}
                self.approvals[data["approval_id"]] = asked
            case "approval.decided":
                self.stage = "going on"
                self.approvals.setdefault(data["approval_id"], {"id": data["approval_id"]})["state"] = data["state"]
            case "usage":
                self.usage = data

    def _result(self, data: dict[str, Any]) -> None:
        """Of a call whose own event was withheld at the time, nothing but the result is known."""
        call = self.calls.setdefault(data["call_id"], CallDraft("a tool", {}))
        call.ok, call.summary = bool(data["ok"]), str(data["summary"])
        call.is_unknown = data.get("effect") == "unknown"

    @property
    def pending(self) -> list[str]:
        """Ids of the requests that nobody has decided yet."""
        return [approval["id"] for approval in self.approvals.values() if approval["state"] == "pending"]

    @property
    def status(self) -> str:
        """What the turn is doing now, in a few words."""
        at_work = [call.tool for call in self.calls.values() if call.ok is None]
        if self.pending:
            return "waiting for approval"
        return ", ".join(at_work) if at_work and not self.stage.startswith("waiting") else self.stage
