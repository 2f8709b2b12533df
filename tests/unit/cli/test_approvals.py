"""`perdure approvals`: a request is read before it is decided, and is decided once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from services.cli.moments import counted
from tests.unit.cli.conftest import Perdure, json_lines
from tests.unit.cli.contract_server import ContractServer
from tests.unit.cli.test_terminal import on_terminal

PREVIEW = "--- travel.md now\n+++ travel.md new\n@@ -1 +1 @@\n-forty euro\n+fifty euro"
APPROVAL: dict[str, Any] = {
    "id": "p1", "run_id": "r1", "session_id": "s1", "tool": "write_document", "arguments_hash": "h", "risk": "write",
    "arguments": {"text": "fifty euro\nand more\n", "space": "handbook", "title": "Travel", "external_id": "travel.md"},
    "reason": "The allowance is too low.", "preview": PREVIEW, "state": "pending", "withheld": False,
    "requested_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-08T00:00:00Z", "decided_by": None, "decided_at": None,
}  # fmt: skip
DECISION = ("POST", "/v1/approvals/p1/decision")
STANDS = {
    "type": "urn:perdure:problem:decided_otherwise", "status": 409, "detail": "This request was rejected already.",
    "state": "rejected", "decided_by": "user:u1", "decided_at": "2026-01-02T00:00:00Z",
}  # fmt: skip


@pytest.fixture(autouse=True)
def approvals(server: ContractServer) -> None:
    server.replies |= {
        ("GET", "/v1/approvals"): (200, {"items": [APPROVAL], "next_cursor": None}),
        ("GET", "/v1/approvals/p1"): (200, APPROVAL),
        ("GET", "/v1/me"): (200, {"user_id": "u1", "tenant_id": "t", "role": "admin", "groups": [], "scopes": []}),
        DECISION: (200, {"id": "p1", "state": "approved", "outcome": "recorded"}),
    }


@pytest.mark.parametrize(
    ("arguments", "body"),
    [
        (["approve", "p1"], {"decision": "approve"}),
        (["approve", "p1", "--session"], {"decision": "approve_session"}),
        (["approve", "p1", "--arguments", '{"text": "x"}'], {"decision": "approve", "arguments": {"text": "x"}}),
        (["approve", "p1", "--feedback", "Sixty."], {"decision": "approve", "feedback": "Sixty."}),
        (["mark-done", "p1"], {"decision": "mark_done"}),
        (["try-again", "p1"], {"decision": "try_again"}),
        (["reject", "p1"], {"decision": "reject"}),
        (["reject", "p1", "--feedback", "Too much."], {"decision": "reject", "feedback": "Too much."}),
    ],
)
def test_a_decision_is_sent_as_the_contract_names_it(
    server: ContractServer, perdure: Perdure, arguments: list[str], body: dict[str, Any]
) -> None:
    done = perdure("approvals", *arguments, "--json")
    assert done.exit_code == 0, done.output
    assert json_lines(done) == [{"id": "p1", "state": "approved", "outcome": "recorded"}]
    ((headers, sent),) = server.sent(*DECISION)
    assert headers["idempotency-key"]
    assert sent == body


def test_what_goes_on_after_a_decision_is_told(perdure: Perdure) -> None:
    done = perdure("approvals", "approve", "p1")
    assert "Approved: write_document space=handbook title=Travel external_id=travel.md text=(2 lines)" in done.stderr
    assert "perdure runs watch r1" in done.stderr


def test_a_decision_that_comes_too_late_is_told_what_stands(server: ContractServer, perdure: Perdure) -> None:
    server.replies[DECISION] = (409, STANDS)

    told = perdure("approvals", "approve", "p1")
    as_json = perdure("approvals", "approve", "p1", "--json")

    assert (told.exit_code, as_json.exit_code) == (1, 1)
    assert "error: This request was rejected already. (decided_otherwise)" in told.stderr
    assert "It stands as rejected by you, " in told.stderr
    assert json_lines(as_json) == [
        {
            "id": "p1",
            "state": "rejected",
            "decided_by": "user:u1",
            "decided_at": "2026-01-02T00:00:00Z",
            "outcome": "decided_otherwise",
        }
    ]


def test_a_request_that_is_over_names_nobody(server: ContractServer, perdure: Perdure) -> None:
    over = {"type": "approval_over", "status": 409, "detail": "This request is over: expired.", "state": "expired"}
    server.replies[DECISION] = (409, over)
    told = perdure("approvals", "reject", "p1")
    assert told.exit_code == 1
    assert "It stands as expired; nothing was changed." in told.stderr


@pytest.mark.parametrize("given", ["{", "[1]", "@/no/such/file"])
def test_arguments_that_are_no_object_are_not_sent(server: ContractServer, perdure: Perdure, given: str) -> None:
    assert perdure("approvals", "approve", "p1", "--arguments", given).exit_code == 2
    assert not server.requests


def test_arguments_may_stand_in_a_file(server: ContractServer, perdure: Perdure, tmp_path: Path) -> None:
    (tmp_path / "call.json").write_text('{"title": "Trips"}')
    assert perdure("approvals", "approve", "p1", "--arguments", f"@{tmp_path / 'call.json'}").exit_code == 0
    assert server.sent(*DECISION)[0][1]["arguments"] == {"title": "Trips"}


def test_show_has_tool_risk_reason_arguments_and_change(perdure: Perdure) -> None:
    shown = perdure("approvals", "show", "p1")
    for part in ("write_document  write  pending", "The allowance is too low.", "travel.md", PREVIEW):
        assert part in shown.stdout
    assert "perdure approvals approve p1" in shown.stderr


def test_show_names_the_commands_that_fit_the_request(server: ContractServer, perdure: Perdure) -> None:
    for change, told in (
        ({"tool": "ask_user", "arguments": {"question": "Which?"}}, "--feedback"),
        ({"state": "unknown_effect"}, "perdure approvals try-again p1"),
        ({"state": "approved", "decided_by": "user:u1", "decided_at": "2026-01-02T00:00:00Z"}, ""),
    ):
        server.replies[("GET", "/v1/approvals/p1")] = (200, {**APPROVAL, **change})
        stderr = perdure("approvals", "show", "p1").stderr
        assert (told in stderr) if told else not stderr


def test_a_call_that_is_tried_again_is_followed_by_its_own_run(server: ContractServer, perdure: Perdure) -> None:
    server.replies[DECISION] = (200, {"id": "p1", "state": "approved", "outcome": "recorded", "run_id": "r5"})
    assert "perdure runs watch r5" in perdure("approvals", "try-again", "p1").stderr


def test_an_argument_that_no_preview_covers_is_shown_whole(server: ContractServer, perdure: Perdure) -> None:
    """Nobody approves what they could not read: only a preview that was not cut stands for a text."""
    script = APPROVAL | {"tool": "run_command", "arguments": {"command": "cd x\nrm -r y"}, "preview": "--- a\n+++ b"}
    server.replies[("GET", "/v1/approvals/p1")] = (200, script)
    assert "rm -r y" in perdure("approvals", "show", "p1").stdout
    cut = APPROVAL | {"preview": "--- a\n+++ b\n[… 900 characters more]"}
    server.replies[("GET", "/v1/approvals/p1")] = (200, cut)
    assert "and more" in perdure("approvals", "show", "p1").stdout


def test_control_characters_of_a_request_never_reach_the_terminal(server: ContractServer, perdure: Perdure) -> None:
    evil = APPROVAL | {"reason": "\x1b[2J", "preview": "--- a\n+++ \x1b[31m b", "arguments": {"text\x07": "\u202eflip"}}
    server.replies[("GET", "/v1/approvals/p1")] = (200, evil)
    server.replies[("GET", "/v1/approvals")] = (200, {"items": [evil], "next_cursor": None})
    shown = perdure("approvals", "show", "p1").stdout + perdure("approvals", "list").stdout
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)


def test_withheld_words_are_said_to_be(server: ContractServer, perdure: Perdure) -> None:
    hidden = APPROVAL | {"withheld": True, "arguments": None, "reason": None, "preview": None}
    server.replies[("GET", "/v1/approvals/p1")] = (200, hidden)
    assert "withheld" in perdure("approvals", "show", "p1").stdout


def test_a_terminal_shows_the_lines_of_a_diff_in_colour(server: ContractServer) -> None:
    screen = on_terminal(server, "approvals", "show", "p1").finish()
    assert "\x1b[31m-forty euro" in screen
    assert "\x1b[32m+fifty euro" in screen


def test_an_empty_inbox_says_so(server: ContractServer, perdure: Perdure) -> None:
    server.replies[("GET", "/v1/approvals")] = (200, {"items": [], "next_cursor": None})
    assert "Nothing waits for you." in perdure("approvals", "list", "--state", "pending").stderr


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(-2, "just now"), (-40, "40 s ago"), (-185, "3 min ago"), (7 * 86_400 - 5, "in 7 d"), (7_300, "in 2 h")],
)
def test_moments_are_counted(seconds: int, told: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert counted(now + timedelta(seconds=seconds), now) == told
