"""An answer as its events make it: text that may start over, sources, citations, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from services.cli.event_stream import StreamEvent


@dataclass
class AnswerDraft:
    """After the last event, `text` equals the stored answer, however often the stream broke or the text was reset."""

    text: str = ""
    stage: str = "queued"
    sources: list[dict[str, Any]] = field(default_factory=list)
    citations: list[dict[str, Any]] = field(default_factory=list)
    end: str | None = None
    error: dict[str, Any] | None = None
    withheld: bool = False

    def apply(self, event: StreamEvent) -> None:
        data = event.data
        if isinstance(data, dict) and data.get("withheld"):
            self.withheld = True
            return
        match event.type:
            case "token":
                self.text += data["text"]
            case "answer.reset":
                self.text = ""
            case "answer.text":
                self.text = data["text"]
            case "sources":
                self.sources = _listed(data, "sources")
            case "citations":
                self.citations = _listed(data, "citations")
            case "stage":
                self.stage = str(data.get("stage"))
            case "run.waiting":
                self.stage = f"waiting for {data.get('for')}"
            case "run.succeeded" | "run.failed" | "run.cancelled" | "run.expired":
                self.end = event.type.removeprefix("run.")
                self.error = data if event.type == "run.failed" else None


def _listed(data: Any, name: str) -> list[dict[str, Any]]:
    """The event's data is the list; a server that must wrap it in an object names it after the event."""
    return list(data) if isinstance(data, list) else list(data.get(name, []))
