"""What a person sees of a turn: text as it comes, each call as one line, each request for approval as a block."""

from __future__ import annotations

import re
from typing import Any

from rich.text import Text

from schemas.answers import AnswerView, Citation
from schemas.approvals import ApprovalView
from schemas.runs import TERMINAL_EVENTS
from services.cli import answer_view, output
from services.cli.approval_view import ASK_USER, PREVIEW_LINES, heading_of, is_cut, request_body
from services.cli.approvals import by_whom
from services.cli.call_text import call_text
from services.cli.chat_screen import Fresh, Screen
from services.cli.client import ApiClient, path_of
from services.cli.event_stream import StreamEvent
from services.cli.failures import CliFailure, EndedBadly
from services.cli.turn_draft import CallDraft, TurnDraft

_STYLE_OF_STATE = {"approved": "green", "rejected": "red"}


class TurnView:
    """Shows each event of one run on a screen. `kept` is the text that stays on it, however the rest is written anew."""

    def __init__(self, client: ApiClient, screen: Screen, run_id: str) -> None:
        self._client = client
        self._screen = screen
        self._run_id = run_id
        self._kept = ""
        self.draft = TurnDraft()

    def apply(self, event: StreamEvent) -> list[ApprovalView]:
        """The requests that this event asks somebody to decide."""
        asked: list[ApprovalView] = []
        if event.type == "tool.call":
            self._settle()
        self.draft.apply(event)
        match event.type, event.data:
            case "tool.result", {"call_id": call_id}:
                self._called(self.draft.calls[call_id])
            case "approval.requested", {"approval_id": approval_id, "tool": tool}:
                asked = self._requested(approval_id, tool)
            case "approval.decided", {"approval_id": approval_id, "state": state}:
                self._decided(approval_id, state)
            case "run.waiting", {"for": engine} if engine != "approval":
                self._screen.remark(f"waiting for {engine}, which does not answer; the turn goes on when it does")
            case kind, _ if kind in TERMINAL_EVENTS:
                self._last()
                return asked
        self._screen.draw(Fresh(self.draft.thinking, self._fresh_text(), self.draft.status))
        return asked

    def finish(self) -> None:
        """What comes after the last event, printed where no screen is drawn any more: the rest of the text, and sources."""
        draft = self.draft
        rest = rest_after(draft.text, self._kept)
        if rest is None:
            output.say("The text was mended at its end; whole, it is:")
            rest = draft.text
        if not (rest.strip() or self._kept or draft.withheld or draft.citations):
            return
        view = AnswerView(
            id=self._run_id,
            run_id=self._run_id,
            state=draft.end or "running",
            question=None,
            answer=rest,
            answered=None,
            withheld=draft.withheld,
            stale=False,
            citations=[Citation.model_validate(citation) for citation in draft.citations],
            usage=draft.usage,
            model="",
        )
        answer_view.print_answer(view, draft.sources, already_shown=rest if self._screen.writes_text else "")

    def failure(self) -> EndedBadly | None:
        """Why the turn did not succeed, when it did not."""
        draft = self.draft
        if draft.end == "succeeded":
            return None
        if draft.error is None:
            return EndedBadly(f"The turn was {draft.end}.", str(draft.end))
        retry = "Try again in a moment." if draft.error.get("retryable") else None
        remedy = retry or f"`perdure runs show {self._run_id}` has more."
        return EndedBadly(str(draft.error.get("detail")), str(draft.error.get("code")), remedy)

    def _fresh_text(self) -> str:
        return rest_after(self.draft.text, self._kept) or ""

    def _last(self) -> None:
        """The end of the text is drawn or left to `finish`, which ends its line."""
        if self._screen.writes_text:
            self._screen.draw(Fresh(text=self._fresh_text()))
        else:
            self._screen.settle(Fresh(self.draft.thinking))

    def _settle(self) -> None:
        self._screen.settle(Fresh(self.draft.thinking, self._fresh_text(), self.draft.status))
        if self._screen.keeps_text and self._fresh_text():
            self._kept = self.draft.text

    def _called(self, call: CallDraft) -> None:
        self._screen.call(_call_line(call))
        if call.is_unknown:
            self._screen.remark("`perdure approvals list --state unknown_effect` has what a person should look at")

    def _requested(self, approval_id: str, tool: str) -> list[ApprovalView]:
        try:
            approval = ApprovalView.model_validate(self._client.get(path_of("approvals", approval_id)))
        except CliFailure as failure:
            self._screen.remark(f"{tool} waits for approval {approval_id}, which cannot be read: {failure.detail}")
            return []
        return [approval] if approval.state == "pending" else []  # a stream that is seen again has decided ones

    def _decided(self, approval_id: str, state: str) -> None:
        tool = self.draft.approvals[approval_id].get("tool", "a tool")
        by = ""
        try:
            view = ApprovalView.model_validate(self._client.get(path_of("approvals", approval_id)))
            by = by_whom(self._client, view.decided_by, None)
        except CliFailure:  # who it was is worth less than going on
            pass
        style = _STYLE_OF_STATE.get(state, "yellow")
        word = "answered" if (tool, state) == (ASK_USER, "approved") else output.one_line(state)
        self._screen.call(Text.assemble((word, style), f"{by}: {output.one_line(tool)}"))


def show_request(screen: Screen, approval: ApprovalView) -> None:
    screen.block(heading_of(approval), request_body(approval, PREVIEW_LINES))
    if is_cut(approval, PREVIEW_LINES):
        screen.remark(f"`perdure approvals show {approval.id}` shows all of it")


def rest_after(text: str, kept: str) -> str | None:
    """What comes in `text` after the words of `kept`: nothing while they are being said again, None when others are."""
    if text.startswith(kept):
        return text[len(kept) :]
    words, end = kept.split(), 0
    for place, found in enumerate(re.finditer(r"\S+", text)):
        if place == len(words):
            return text[end:]
        if found.group() != words[place]:
            is_cut_here = found.end() == len(text) and words[place].startswith(found.group())
            return "" if is_cut_here else None
        end = found.end()
    return ""


def result_of(conversation_id: str | None, run_id: str, draft: TurnDraft) -> dict[str, Any]:
    """A turn as --json prints it."""
    return {
        "session_id": conversation_id,
        "run_id": run_id,
        "state": draft.end,
        "text": None if draft.withheld else draft.text,
        "citations": [] if draft.withheld else draft.citations,
        "usage": draft.usage,
        "error": draft.error,
        "approvals": list(draft.approvals.values()),
    }


def _call_line(call: CallDraft) -> Text:
    mark, style = ("?", "yellow") if call.is_unknown else ("✓", "green") if call.ok else ("✗", "red")
    line = Text.assemble((mark, style), " ").append_text(call_text(call.tool, call.arguments))
    said = output.one_line(call.summary)
    return line.append(f" · {said}", style="" if call.ok else style)
