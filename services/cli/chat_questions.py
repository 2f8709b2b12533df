"""Requests for approval put to the person at the terminal, one at a time, until somebody has decided them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.text import Text

from schemas.approvals import ApprovalView
from services.cli import output
from services.cli.approval_view import ASK_USER, PREVIEW_LINES, is_cut, request_body
from services.cli.approvals import StandsOtherwise, decide
from services.cli.chat_screen import Screen
from services.cli.chat_view import show_request
from services.cli.client import ApiClient

_DECISIONS = {"a": "approve", "approve": "approve", "s": "approve_session", "session": "approve_session"}
_OTHERS = {"r": "reject", "reject": "reject", "l": "later", "later": "later", "v": "view", "view": "view"}


class Questions:
    """Of one turn. An answer is a line of its own, so that words meant for the agent approve nothing."""

    def __init__(self, client: ApiClient, screen: Screen, run_id: str) -> None:
        self._client = client
        self._screen = screen
        self._run_id = run_id
        self._shown: str | None = None
        self._open: dict[str, ApprovalView] = {}
        self._later: set[str] = set()

    @property
    def current(self) -> ApprovalView | None:
        waiting = [approval for approval in self._open.values() if approval.id not in self._later]
        return waiting[0] if waiting else None

    def add(self, approval: ApprovalView) -> None:
        self._open[approval.id] = approval
        self._put()

    def close(self, approval_id: str) -> None:
        """Somebody has decided it."""
        self._open.pop(approval_id, None)
        self._put()

    def take_up(self, pending: Iterable[ApprovalView]) -> None:
        """All of these, those that were left for later too, and those of other turns."""
        self._later.clear()
        self._shown = None
        self._open |= {approval.id: approval for approval in pending}
        self._put()

    def leave(self) -> None:
        """The one that is asked is left for later."""
        approval = self.current
        if approval is None:
            return
        self._later.add(approval.id)
        self._screen.remark(later_text(approval))
        self._put()

    def answer(self, line: str) -> None:
        approval = self.current
        assert approval is not None
        if approval.tool == ASK_USER:
            self._decide(approval, {"decision": "approve", "feedback": line})
            return
        word, _, words = line.strip().partition(" ")
        if word.lower() in _DECISIONS and not words:
            self._decide(approval, {"decision": _DECISIONS[word.lower()]})
            return
        match _OTHERS.get(word.lower()):
            case "reject":
                self._decide(approval, {"decision": "reject", **({"feedback": words.strip()} if words else {})})
            case "later" if not words:
                self.leave()
            case "view" if not words:
                self._screen.block(Text("The whole request"), request_body(approval))
                self._put()
            case _:
                self._screen.remark("Answer with a, s, r or l; /steer TEXT says something to the agent.")

    def _decide(self, approval: ApprovalView, wanted: dict[str, Any]) -> None:
        try:
            reply = decide(self._client, approval.id, wanted)
            if approval.run_id != self._run_id:  # of this turn's own, an event tells
                self._screen.remark(f"{reply['state']}: {approval.tool}")
        except StandsOtherwise as otherwise:
            self._screen.remark(f"{otherwise.detail} {otherwise.remedy}")
        self.close(approval.id)

    def _put(self) -> None:
        approval = self.current
        if approval is None:
            self._shown = None
            self._screen.ask(None)
            return
        if approval.id != self._shown:
            self._shown = approval.id
            show_request(self._screen, approval)
        if approval.tool == ASK_USER:
            self._screen.ask("Your next line is the answer (/later: not now).")
            return
        tool = output.one_line(approval.tool)
        view = ", [v]iew all of it" if is_cut(approval, PREVIEW_LINES) else ""
        self._screen.ask(f"{tool}: [a]pprove, for the whole [s]ession, [r]eject (say why), [l]ater{view}?")


def later_text(approval: ApprovalView) -> str:
    """What decides a request from elsewhere."""
    if approval.tool == ASK_USER:
        return (
            f'It waits for an answer: `perdure approvals approve {approval.id} --feedback "…"`; the turn then goes on.'
        )
    return f"It waits until somebody decides: `perdure approvals approve {approval.id}` (or `reject`); the turn then goes on."
