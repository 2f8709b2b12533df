"""`perdure chat` with a message: one turn, followed to its end whatever happens to the connection."""

from __future__ import annotations

from typing import Any

import pytest

from services.cli.client import ApiClient
from services.cli.connection import Connection
from services.cli.conversation import open_conversation
from tests.unit.cli.conftest import Perdure, json_lines
from tests.unit.cli.contract_server import ANSWER, KEY, ContractServer
from tests.unit.cli.test_agents import AGENT, AGENTS
from tests.unit.cli.test_approvals import APPROVAL

CITATIONS: Any = ANSWER["citations"]
SESSION: dict[str, Any] = {
    "id": "s1", "agent_id": "a7", "title": None, "incognito": False, "forked_from": None, "running": None,
    "created_at": "2026-01-01T00:00:00Z",
}  # fmt: skip
EVENTS: list[tuple[str, str, Any]] = [
    ("0.1", "run.started", {"kind": "turn", "policies": {}}),
    ("0.2", "thinking", {"text": "Let me see.\n"}),
    ("0.3", "token", {"text": "I look. "}),
    ("0.4", "tool.call", {"call_id": "c1", "tool": "search", "arguments": {"query": "lost laptop"}, "risk": "read"}),
    ("0.5", "tool.result", {"call_id": "c1", "ok": True, "summary": "2 passages", "result_ref": None}),
    ("0.6", "token", {"text": "\n\nWrong"}),
    ("1.7", "answer.reset", {}),
    ("1.8", "token", {"text": "I look. "}),
    ("1.9", "token", {"text": "\n\nWithin one day [1]."}),
    ("1.10", "tool.call", {"call_id": "c2", "tool": "write_document", "arguments": {"title": "T"}, "risk": "write"}),
    ("1.11", "approval.requested", {"approval_id": "p1", "tool": "write_document"}),
    ("1.12", "run.waiting", {"for": "approval", "until": "2026-01-08T00:00:00Z"}),
]
DECIDED: list[tuple[str, str, Any]] = [
    ("1.13", "approval.decided", {"approval_id": "p1", "state": "approved"}),
    ("1.14", "tool.result", {"call_id": "c2", "ok": False, "summary": "It broke.", "result_ref": None}),
    ("1.15", "token", {"text": "\n\nDone."}),
    ("1.16", "answer.text", {"text": "I look.\n\nWithin one day [1].\n\nDone."}),
    ("1.17", "citations", CITATIONS),
    ("1.18", "usage", {"input_tokens": 5, "output_tokens": 3, "cost": None}),
    ("1.19", "run.succeeded", {}),
]
MESSAGES = ("POST", "/v1/sessions/s1/messages")
RESULT = {
    "session_id": "s1", "run_id": "r1", "state": "succeeded", "text": "I look.\n\nWithin one day [1].\n\nDone.",
    "citations": CITATIONS, "usage": {"input_tokens": 5, "output_tokens": 3, "cost": None}, "error": None,
    "approvals": [{"id": "p1", "tool": "write_document", "state": "approved"}],
}  # fmt: skip


def let_chat(server: ContractServer) -> None:
    """An agent that asks once, and is approved."""
    server.events = [*EVENTS, *DECIDED]
    server.replies |= {
        AGENTS: (200, {"items": [AGENT], "next_cursor": None}),
        ("POST", "/v1/sessions"): (201, SESSION),
        ("GET", "/v1/sessions/s1"): (200, SESSION),
        MESSAGES: (202, {"run_id": "r1"}),
        ("GET", "/v1/approvals/p1"): (200, APPROVAL),
        ("GET", "/v1/me"): (200, {"user_id": "u1", "tenant_id": "t", "role": "admin", "groups": [], "scopes": []}),
    }


@pytest.fixture(autouse=True)
def chatting(server: ContractServer) -> None:
    let_chat(server)


@pytest.mark.parametrize("cut", [None, 0, 3, 6, 7, 9, 11, 12, 15, 18])
def test_one_object_comes_of_a_turn_wherever_its_stream_is_cut(
    server: ContractServer, perdure: Perdure, cut: int | None
) -> None:
    server.faults.drops = [] if cut is None else [cut]
    done = perdure("chat", "editor", "When", "is it?", "--json")
    assert done.exit_code == 0, done.output
    assert json_lines(done) == [RESULT]
    ((_, said),) = server.sent(*MESSAGES)
    assert (said["text"], said["mode"]) == ("When is it?", "enqueue")


def test_a_pipe_gets_the_whole_answer_and_stderr_what_somebody_must_know(perdure: Perdure) -> None:
    done = perdure("chat", "editor", "When?")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[:6] == ["I look.", "", "Within one day [1].", "", "Done.", ""]
    assert "Citations" in done.stdout
    assert "Approval needed: write_document (write)" in done.stderr
    assert "`perdure approvals approve p1`" in done.stderr
    assert "perdure chat editor --session s1" in done.stderr


def test_a_turn_that_fails_gives_exit_code_3_and_what_it_had_said(server: ContractServer, perdure: Perdure) -> None:
    failed = {"code": "budget_exceeded", "detail": "The turn used its iterations.", "retryable": False}
    server.events = [*EVENTS[:5], ("0.6", "answer.text", {"text": "I look."}), ("0.7", "run.failed", failed)]

    done = perdure("chat", "editor", "When?")
    as_json = perdure("chat", "editor", "When?", "--json")

    assert (done.exit_code, as_json.exit_code) == (3, 3)
    assert done.stdout.strip() == "I look."
    assert "error: The turn used its iterations. (budget_exceeded)" in done.stderr
    (result,) = json_lines(as_json)
    assert (result["state"], result["error"]) == ("failed", failed)


def test_a_stopped_turn_gives_exit_code_3(server: ContractServer, perdure: Perdure) -> None:
    server.events = [EVENTS[0], ("0.2", "run.cancelled", {"by": "user:u1"})]
    done = perdure("chat", "editor", "When?", "--json")
    assert done.exit_code == 3
    assert json_lines(done)[0]["state"] == "cancelled"


def test_a_turn_that_may_no_longer_be_read_has_no_text(server: ContractServer, perdure: Perdure) -> None:
    server.events = [EVENTS[0], *[(each[0], each[1], {"withheld": True}) for each in EVENTS[1:5]], DECIDED[-1]]
    assert json_lines(perdure("chat", "editor", "When?", "--json"))[0]["text"] is None
    assert "withheld" in perdure("chat", "editor", "When?").stdout


def test_a_session_is_gone_on_in_and_only_with_its_own_agent(server: ContractServer, perdure: Perdure) -> None:
    assert perdure("chat", "a7", "And?", "--session", "s1", "--json").exit_code == 0
    assert not server.sent("POST", "/v1/sessions")
    server.replies[("GET", "/v1/sessions/s1")] = (200, SESSION | {"agent_id": "other"})
    assert perdure("chat", "a7", "And?", "--session", "s1").exit_code == 2


def test_json_needs_a_message(server: ContractServer, perdure: Perdure) -> None:
    assert perdure("chat", "editor", "--json").exit_code == 2
    assert not server.requests


def test_a_message_is_sent_again_under_its_own_id_while_the_server_is_away(server: ContractServer) -> None:
    server.replies[MESSAGES] = (503, {"type": "unavailable", "detail": "Starting."})

    def comes_back(_: float) -> None:
        server.replies[MESSAGES] = (202, {"run_id": "r1"})

    with ApiClient(Connection(server.url, KEY, ""), sleep=comes_back) as client:
        assert open_conversation(client, "editor", "s1").send("When?") == "r1"
    first, second = (body for _, body in server.sent(*MESSAGES))
    assert first == second
