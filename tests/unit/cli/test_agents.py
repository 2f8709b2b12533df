"""`perdure agents`: what is named on the command line is sent, what is not stays as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import Perdure, json_lines
from tests.unit.cli.contract_server import ContractServer

AGENT: dict[str, Any] = {
    "id": "a7", "name": "editor", "instructions": "Keep it.\nQuote it.", "model": None, "tools": ["search"], "mode": "ask",
    "always_ask": ["search"], "limits": {"iterations": 20, "tokens": None, "cost": None, "wall_seconds": None},
    "spaces": ["handbook"], "approver_roles": ["manager"], "version": 2, "owner": "user:u1",
    "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
}  # fmt: skip
AGENTS = ("GET", "/v1/agents")
CREATE = ("POST", "/v1/agents")
CHANGE = ("PUT", "/v1/agents/a7")


@pytest.fixture(autouse=True)
def agents(server: ContractServer) -> None:
    server.replies |= {
        AGENTS: (200, {"items": [AGENT], "next_cursor": None}),
        CREATE: (201, AGENT),
        CHANGE: (200, AGENT),
        ("DELETE", "/v1/agents/a7"): (204, None),
    }


def test_only_what_is_named_is_sent(server: ContractServer, perdure: Perdure) -> None:
    assert perdure("agents", "create", "editor").exit_code == 0
    ((_, body),) = server.sent(*CREATE)
    assert body == {"name": "editor"}


def test_everything_that_is_named_is_sent(server: ContractServer, perdure: Perdure, tmp_path: Path) -> None:
    (tmp_path / "editor.md").write_text("Keep it.\n")
    done = perdure(
        "agents", "create", "editor", "--instructions", f"@{tmp_path / 'editor.md'}", "--model", "openai-chat:m",
        "--tool", "search", "--tool", "write_document", "--mode", "auto", "--always-ask", "write_document",
        "--space", "handbook", "--space", "notes", "--approver-role", "manager", "--iterations", "5", "--tokens", "900",
        "--cost", "0.5", "--wall-seconds", "60", "--json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert json_lines(done) == [AGENT]
    ((headers, body),) = server.sent(*CREATE)
    assert headers["idempotency-key"]
    assert body == {
        "name": "editor", "instructions": "Keep it.\n", "model": "openai-chat:m", "tools": ["search", "write_document"],
        "mode": "auto", "always_ask": ["write_document"], "spaces": ["handbook", "notes"], "approver_roles": ["manager"],
        "limits": {"iterations": 5, "tokens": 900, "cost": 0.5, "wall_seconds": 60},
    }  # fmt: skip


def test_a_change_keeps_what_it_does_not_name(server: ContractServer, perdure: Perdure) -> None:
    done = perdure(
        "agents", "change", "editor", "--name", "writer", "--tokens", "900", "--tool", "write_document",
        "--clear", "always-ask", "--clear", "spaces",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    ((_, body),) = server.sent(*CHANGE)
    assert body == {
        "name": "writer", "instructions": AGENT["instructions"], "model": None, "tools": ["write_document"], "mode": "ask",
        "limits": {"iterations": 20, "tokens": 900, "cost": None, "wall_seconds": None}, "approver_roles": ["manager"],
    }  # fmt: skip


def test_a_change_of_nothing_sends_nothing(server: ContractServer, perdure: Perdure) -> None:
    assert perdure("agents", "change", "editor").exit_code == 2
    assert not server.requests


@pytest.mark.parametrize("named", ["editor", "a7"])
def test_an_agent_is_found_by_name_and_by_id(server: ContractServer, perdure: Perdure, named: str) -> None:
    assert perdure("agents", "remove", named, "--yes").exit_code == 0
    assert len(server.sent("DELETE", "/v1/agents/a7")) == 1


def test_removing_unasked_needs_yes_and_an_unknown_name_is_said(server: ContractServer, perdure: Perdure) -> None:
    assert perdure("agents", "remove", "editor").exit_code == 2
    unknown = perdure("agents", "show", "nobody")
    assert unknown.exit_code == 2
    assert "error: There is no agent 'nobody'. (not_found)" in unknown.stderr


def test_show_says_in_words_what_is_left_open(server: ContractServer, perdure: Perdure) -> None:
    server.replies[AGENTS] = (200, {"items": [AGENT | {"spaces": None, "approver_roles": []}], "next_cursor": None})
    shown = perdure("agents", "show", "editor").stdout
    assert "all that its user sees" in shown
    assert "the server's default" in shown
    assert "20 model calls a turn" in shown
    assert shown.endswith("Instructions\nKeep it.\nQuote it.\n")


def test_a_missing_file_of_instructions_is_said_before_anything_is_sent(
    server: ContractServer, perdure: Perdure, tmp_path: Path
) -> None:
    done = perdure("agents", "create", "editor", "--instructions", f"@{tmp_path / 'none.md'}")
    assert done.exit_code == 2
    assert "--instructions" in done.stderr
    assert not server.requests
