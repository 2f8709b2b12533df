"""`perdure chat` line by line: what is typed while a turn runs, and what the screen keeps."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.running.processes import wait_until
from tests.unit.cli.contract_server import ContractServer
from tests.unit.cli.test_approvals import APPROVAL, DECISION, STANDS
from tests.unit.cli.test_chat import DECIDED, EVENTS, MESSAGES, SESSION, let_chat
from tests.unit.cli.test_terminal import COMMAND, ROOT, environment
from tests.unit.cli.typing_terminal import TypingTerminal

CANCEL = ("POST", "/v1/runs/r1/cancel")
Chat = Callable[..., TypingTerminal]


@pytest.fixture(autouse=True)
def asking(server: ContractServer) -> None:
    """The turn has asked, and goes on when a test lets it."""
    let_chat(server)
    server.events = list(EVENTS)
    server.replies |= {
        DECISION: (200, {"id": "p1", "state": "approved", "outcome": "recorded"}),
        CANCEL: (202, {"run_id": "r1"}),
        ("GET", "/v1/approvals"): (200, {"items": [APPROVAL], "next_cursor": None}),
    }


@pytest.fixture
def chat(server: ContractServer) -> Iterator[Chat]:
    opened: list[TypingTerminal] = []

    def open_chat(*arguments: str, **extra: str) -> TypingTerminal:
        opened.append(TypingTerminal([*COMMAND, "chat", "editor", *arguments], environment(server, **extra)))
        return opened[-1]

    yield open_chat
    for terminal in opened:
        terminal.close()


def sent(server: ContractServer, method: str, path: str, count: int = 1) -> list[Any]:
    """The bodies of such requests, once there are as many."""
    wait_until(lambda: len(server.sent(method, path)) >= count, 20)
    return [body for _, body in server.sent(method, path)]


def begin(terminal: TypingTerminal) -> None:
    terminal.wait_for("> ")
    terminal.type("When?\r")
    terminal.wait_for("[a]pprove")


@pytest.mark.parametrize("plain", [{}, {"NO_COLOR": "1"}])
def test_a_request_is_approved_where_it_came_up(server: ContractServer, chat: Chat, plain: dict[str, str]) -> None:
    terminal = chat(**plain)
    begin(terminal)
    terminal.type("yes, do that\r")
    terminal.wait_for("Answer with a, s, r or l")
    assert not server.sent(*DECISION)
    terminal.type("a\r")
    assert sent(server, *DECISION) == [{"decision": "approve"}]
    server.replies[("GET", "/v1/approvals/p1")] = (200, APPROVAL | {"state": "approved", "decided_by": "user:u1"})
    server.events += DECIDED
    terminal.wait_for("Report it within one day.")
    terminal.type("/quit\r")
    assert terminal.end() == 0

    screen = terminal.screen
    for part in (
        '✓ search query="lost laptop" · 2 passages', "+fifty euro", "approved by you: write_document",
        "✗ write_document title=T · It broke.", "Citations", "perdure chat editor --session s1",
    ):  # fmt: skip
        assert part in screen
    assert ("\x1b" in terminal.raw) == (not plain)


def test_text_that_was_taken_back_does_not_stay(server: ContractServer, chat: Chat) -> None:
    server.events = [*EVENTS, *DECIDED]
    terminal = chat("When?")
    assert terminal.end() == 0
    kept = terminal.raw.rpartition("\x1b[2K")[2]
    assert "Done." in kept
    assert "Wrong" not in kept
    assert terminal.screen.rstrip().endswith("`perdure chat editor --session s1`.")


@pytest.mark.parametrize(
    ("answer", "decision"),
    [
        ("s", {"decision": "approve_session"}),
        ("r", {"decision": "reject"}),
        ("reject the amount is wrong", {"decision": "reject", "feedback": "the amount is wrong"}),
    ],
)
def test_a_request_may_be_approved_for_the_session_or_rejected(
    server: ContractServer, chat: Chat, answer: str, decision: dict[str, str]
) -> None:
    terminal = chat()
    begin(terminal)
    terminal.type(f"{answer}\r")
    assert sent(server, *DECISION) == [decision]


def test_a_request_left_for_later_can_be_taken_up_again(server: ContractServer, chat: Chat) -> None:
    terminal = chat()
    begin(terminal)
    terminal.type("l\r")
    terminal.wait_for("perdure approvals approve p1")
    terminal.type("/approvals\r")
    terminal.wait_for("Approval needed: write_document", count=2)
    terminal.type("a\r")
    assert sent(server, *DECISION) == [{"decision": "approve"}]


def test_a_question_of_the_agent_is_answered_by_the_next_line(server: ContractServer, chat: Chat) -> None:
    asked = {**APPROVAL, "tool": "ask_user", "arguments": {"question": "Fifty, or sixty?"}, "preview": None}
    server.replies[("GET", "/v1/approvals/p1")] = (200, asked)
    terminal = chat()
    terminal.wait_for("> ")
    terminal.type("When?\r")
    terminal.wait_for("Your next line is the answer")
    assert "Fifty, or sixty?" in terminal.screen
    terminal.type("/later\r")
    terminal.wait_for("It waits for an answer")
    server.replies[("GET", "/v1/approvals")] = (200, {"items": [asked], "next_cursor": None})
    terminal.type("/approvals\r")
    terminal.wait_for("Fifty, or sixty?", count=2)
    terminal.type("a hundred\r")
    assert sent(server, *DECISION) == [{"decision": "approve", "feedback": "a hundred"}]


def test_a_request_of_an_agent_below_is_found_and_decided(server: ContractServer, chat: Chat) -> None:
    """Its events stand in its own run's stream; the list of approvals has it."""
    below = {
        **APPROVAL,
        "id": "p2",
        "run_id": "r2",
        "tool": "run_command",
        "arguments": {"command": "ls"},
        "preview": None,
    }
    server.events = EVENTS[:4]
    server.replies |= {
        ("GET", "/v1/approvals"): (200, {"items": [below], "next_cursor": None}),
        ("POST", "/v1/approvals/p2/decision"): (200, {"id": "p2", "state": "rejected", "outcome": "recorded"}),
    }
    terminal = chat()
    terminal.wait_for("> ")
    terminal.type("When?\r")
    terminal.wait_for("… search")
    terminal.type("/approvals\r")
    terminal.wait_for("run_command: [a]pprove")
    terminal.type("r not that\r")
    terminal.wait_for("rejected: run_command")
    assert sent(server, "POST", "/v1/approvals/p2/decision") == [{"decision": "reject", "feedback": "not that"}]


def test_a_request_decided_elsewhere_is_asked_no_more(server: ContractServer, chat: Chat) -> None:
    server.replies[DECISION] = (409, STANDS)
    terminal = chat()
    begin(terminal)
    terminal.type("a\r")
    terminal.wait_for("It stands as rejected by you")
    terminal.type("And then?\r")
    assert [body["text"] for body in sent(server, *MESSAGES, count=2)] == ["When?", "And then?"]


def test_the_turn_under_way_is_steered_and_stopped(server: ContractServer, chat: Chat) -> None:
    server.events = EVENTS[:3]
    terminal = chat()
    terminal.wait_for("> ")
    terminal.type("When?\r")
    terminal.wait_for("I look.")
    terminal.type("/steer in english\r")
    assert [body["mode"] for body in sent(server, *MESSAGES, count=2)] == ["enqueue", "steer"]
    terminal.type("/stop\r")
    sent(server, *CANCEL)
    server.events.append(("0.4", "run.cancelled", {"by": "user:u1"}))
    terminal.wait_for("Stopped.")
    terminal.type("\x04")
    assert terminal.end() == 0


@pytest.mark.parametrize("message", [["When?"], []])
def test_ctrl_c_leaves_the_turn_going_on_and_says_how_to_follow_it(
    server: ContractServer, chat: Chat, message: list[str]
) -> None:
    terminal = chat(*message)
    if not message:
        terminal.wait_for("> ")
        terminal.type("When?\r")
    terminal.wait_for("Within one day [1].")
    terminal.interrupt()
    assert terminal.end() == 130
    for part in ("perdure runs watch r1", "perdure runs cancel r1", "perdure chat editor --session s1"):
        assert part in " ".join(terminal.screen.split())
    assert not server.sent(*CANCEL)


def test_a_session_is_opened_with_its_last_words_and_the_turn_under_way(server: ContractServer, chat: Chat) -> None:
    said: dict[str, Any] = {
        "message_id": "m", "mode": None, "run_id": "r0", "created_at": "2026-01-01T00:00:00Z", "read_at": None,
        "citations": [],
    }  # fmt: skip
    words = [
        {**said, "id": "1", "role": "user", "text": "Long ago"},
        {**said, "id": "2", "role": "user", "text": "Earlier?"},
        {**said, "id": "3", "role": "assistant", "text": "Before."},
    ]
    server.replies[("GET", "/v1/sessions/s1")] = (200, SESSION | {"running": "r1"})
    server.replies[("GET", "/v1/sessions/s1/messages")] = (200, {"items": words, "next_cursor": None})
    terminal = chat("--session", "s1")
    terminal.wait_for("[a]pprove")
    assert "> Earlier?\nBefore.\nThe turn under way:\n" in terminal.screen
    assert "Long ago" not in terminal.screen


def test_lines_of_a_pipe_wait_for_the_turn_before_them_and_answer_its_requests(server: ContractServer) -> None:
    server.replies[MESSAGES] = (202, {"run_id": "r1"})
    process = subprocess.Popen(
        [*COMMAND, "chat", "editor"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT,
        env=environment(server), text=True,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write("When?\na\nAnd then?\n")
    process.stdin.flush()
    assert sent(server, *DECISION) == [{"decision": "approve"}]
    assert len(server.sent(*MESSAGES)) == 1
    server.events += DECIDED
    assert [body["text"] for body in sent(server, *MESSAGES, count=2)] == ["When?", "And then?"]
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert out.count("Done.") == 2
