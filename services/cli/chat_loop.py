"""`perdure chat` without a message: lines in, turns shown, and commands while a turn runs."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from rich.text import Text

from schemas.approvals import ApprovalView
from services.cli import approvals, output
from services.cli.chat_questions import Questions
from services.cli.chat_screen import Screen
from services.cli.chat_view import TurnView
from services.cli.client import ApiClient, path_of
from services.cli.conversation import Conversation
from services.cli.failures import CliFailure, EndedBadly
from services.cli.run_follower import RunFollower
from services.cli.typed_lines import LATER, QUIT, TypedLines

_LISTED = 20
_POLL_S = 0.05
HELP = """\
What you type goes to the agent; while it works, your next message waits for its turn.
/steer TEXT   say something to the turn under way
/stop         stop the turn under way
/approvals    what waits for you to decide
/quit         leave; what is under way goes on in the server"""


class _Message(NamedTuple):
    """What was said, and the run that answers it. `text` is null where its words stand above already."""

    run_id: str
    text: str | None = None


class Left(Exception):
    """The person has left while a turn ran."""


class ChatLoop:
    """`under_way` is the run that is shown just now; `failure` is why the last turn did not succeed."""

    def __init__(
        self, client: ApiClient, conversation: Conversation, lines: TypedLines, new_screen: Callable[[], Screen]
    ) -> None:
        self._client = client
        self._conversation = conversation
        self._lines = lines
        self._new_screen = new_screen
        self._queued: deque[_Message] = deque()
        if conversation.running:
            self._queued.append(_Message(conversation.running))
        self.under_way: str | None = None
        self.failure: EndedBadly | None = None
        self._is_stopped = False

    def run(self) -> None:
        try:
            self._show_queued()
            while (line := self._lines.next("> ")) is not None and line.strip() != QUIT:
                self._said(line.strip())
                self._show_queued()
        except Left:
            pass

    def _said(self, line: str) -> None:
        """Between turns, where a message begins one."""
        word, _, words = line.partition(" ")
        try:
            if not line:
                return
            if word == "/approvals":
                approvals.print_list(self._pending())
                output.say("`perdure approvals show ID` shows one; `approve ID` and `reject ID` decide.")
            elif word == "/help":
                output.out().print(HELP)
            elif word == "/stop":
                output.say("No turn is under way.")
            elif line.startswith("/") and word != "/steer":
                output.say(f"There is no command {word}; /help lists them.")
            elif message := (words.strip() if word == "/steer" else line):
                self._queued.append(_Message(self._conversation.send(message)))
        except CliFailure as failure:
            output.print_failure(failure)

    def _show_queued(self) -> None:
        while self._queued:
            message = self._queued.popleft()
            if message.text is not None:
                output.out().print(Text(f"> {output.one_line(message.text)}"))
            self.under_way, self._is_stopped = message.run_id, False
            try:
                self._show(message.run_id)
            except CliFailure as failure:
                output.print_failure(failure)
            self.under_way = None

    def _show(self, run_id: str) -> None:
        view = self._turn(run_id)
        view.finish()
        self.failure = view.failure()
        if self._is_stopped and view.draft.end == "cancelled":
            output.say("Stopped.")
        elif self.failure is not None:
            output.print_failure(self.failure)
        if sys.stdin.isatty():
            output.say("")

    def _turn(self, run_id: str) -> TurnView:
        with self._new_screen() as screen, self._lines.while_running():
            follower, view = RunFollower(self._client, run_id), TurnView(self._client, screen, run_id)
            questions = Questions(self._client, screen, run_id)
            while view.draft.end is None:
                for event in follower.take():
                    for approval in view.apply(event):
                        questions.add(approval)
                    if event.type == "approval.decided":
                        questions.close(str(event.data.get("approval_id")))
                if view.draft.end is None:
                    for line in self._lines.poll(_POLL_S, is_asked=questions.current is not None):
                        self._said_meanwhile(line.strip(), run_id, screen, questions)
                    screen.typed(self._lines.partial)
        return view

    def _said_meanwhile(self, line: str, run_id: str, screen: Screen, questions: Questions) -> None:
        word, _, words = line.partition(" ")
        try:
            if word == QUIT:
                raise Left
            if word == "/stop":
                self._client.send("POST", path_of("runs", run_id, "cancel"))
                self._is_stopped = True
                screen.remark("The turn is asked to stop.")
            elif word == "/steer" and words.strip():
                self._steer(words.strip(), run_id, screen)
            elif word == "/approvals":
                questions.take_up(self._pending())
                if questions.current is None:
                    screen.remark("Nothing waits for you.")
            elif word == LATER:
                questions.leave()
            elif word == "/help":
                for each in HELP.splitlines():
                    screen.remark(each)
            elif line.startswith("/"):
                screen.remark(f"There is no command {line}; /help lists them.")
            elif questions.current is not None and line:
                questions.answer(line)
            elif line:
                self._queued.append(_Message(self._conversation.send(line), line))
                screen.remark(f"> {line} (waits for its turn)")
        except CliFailure as failure:
            screen.remark(f"error: {failure.detail} {failure.remedy or ''}")

    def _steer(self, words: str, run_id: str, screen: Screen) -> None:
        run = self._conversation.send(words, "steer")
        screen.remark(f"> {words} (told to the turn under way)")
        if run != run_id:  # it had just ended
            self._queued.append(_Message(run, words))

    def _pending(self) -> list[ApprovalView]:
        items = self._client.items(path_of("approvals"), {"state": "pending"}, limit=_LISTED)["items"]
        return [ApprovalView.model_validate(item) for item in items]
