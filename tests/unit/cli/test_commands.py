"""Each command calls what the contract names and prints the API's own object with --json."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from services.cli.keys import expiry
from tests.unit.cli.conftest import Perdure, json_lines
from tests.unit.cli.contract_server import ContractServer

USERS = {
    "items": [{"id": "u7", "email": "Ann@example.org", "name": "Ann", "role": "member", "disabled": False}],
    "next_cursor": None,
}
GROUPS = {"items": [{"id": "g3", "name": "Finance"}], "next_cursor": None}
HIT = {
    "chunk_id": "c1", "document_id": "d1", "document_version": 1, "title": "[bold]Leave[/bold]", "heading_path": ["Sweden"],
    "page_start": 2, "page_end": 2, "start": 0, "end": 9, "text": "Thirty days " * 60, "score": 0.8125,
    "scores": {"vector": 0.9},
}  # fmt: skip
CALLS: list[tuple[list[str], str, str, Any]] = [
    (["spaces", "create", "new"], "POST", "/v1/spaces", {"name": "new"}),
    (["spaces", "remove", "old", "--yes"], "DELETE", "/v1/spaces/old", None),
    (
        ["spaces", "grant", "s", "user:ann@example.org", "viewer"],
        "PUT",
        "/v1/spaces/s/grants/user:u7",
        {"role": "viewer"},
    ),
    (["spaces", "grant", "s", "group:finance", "manager"], "PUT", "/v1/spaces/s/grants/group:g3", {"role": "manager"}),
    (["spaces", "revoke", "s", "tenant"], "DELETE", "/v1/spaces/s/grants/tenant", None),
    (["users", "create", "b@x.org", "Bo"], "POST", "/v1/users", {"email": "b@x.org", "name": "Bo", "role": "member"}),
    (["users", "change", "ann@example.org", "--disable"], "PUT", "/v1/users/u7", {"disabled": True}),
    (["groups", "add", "g3", "u7"], "PUT", "/v1/groups/g3/members/u7", None),
    (["groups", "take", "Finance", "u7"], "DELETE", "/v1/groups/g3/members/u7", None),
    (["groups", "remove", "Finance"], "DELETE", "/v1/groups/g3", None),
    (["keys", "create", "u7", "--scope", "read"], "POST", "/v1/api-keys", {"user_id": "u7", "scopes": ["read"]}),
    (["keys", "revoke", "k1"], "DELETE", "/v1/api-keys/k1", None),
    (["documents", "tags", "d1", "a", "b"], "PUT", "/v1/documents/d1/tags", {"tags": ["a", "b"]}),
    (["documents", "tags", "d1", "--clear"], "PUT", "/v1/documents/d1/tags", {"tags": []}),
    (["documents", "readers", "d1", "user:u7"], "PUT", "/v1/documents/d1/readers", {"readers": ["user:u7"]}),
    (["documents", "retry", "d1"], "POST", "/v1/documents/d1/retry", None),
    (["documents", "remove", "d1"], "DELETE", "/v1/documents/d1", None),
    (["runs", "cancel", "../r1"], "POST", "/v1/runs/../r1/cancel", None),
]


@pytest.mark.parametrize(("arguments", "method", "path", "body"), CALLS)
def test_a_command_makes_the_contracts_call(
    server: ContractServer, perdure: Perdure, arguments: list[str], method: str, path: str, body: Any
) -> None:
    reply = {"id": "n1", "key": "pk_1", "run_id": "r1", "name": "n", "tags": [], "readers": []}
    server.replies |= {
        ("GET", "/v1/users"): (200, USERS),
        ("GET", "/v1/groups"): (200, GROUPS),
        (method, path): (204, None) if body is None and method == "PUT" else (201, reply),
    }
    result = perdure(*arguments, "--json")

    assert result.exit_code == 0, result.output
    assert isinstance(json.loads(result.stdout), dict)
    ((headers, sent),) = server.sent(method, path)
    assert sent == body
    assert bool(headers.get("idempotency-key")) is (method == "POST")


def test_search_prints_where_and_what_was_found(server: ContractServer, perdure: Perdure) -> None:
    legs = [{"name": "vector", "hits": 5, "ms": 1.5, "error": None}]
    reply = {"legs": legs, "degraded": ["keyword leg is down"], "hits": [HIT]}
    server.replies[("POST", "/v1/search")] = (200, reply)

    result = perdure("search", "leave", "--space", "handbook", "--explain", "--limit", "3")

    assert result.stdout.splitlines()[0] == "1. [bold]Leave[/bold]  Sweden  p. 2  0.812  vector=0.900"
    assert "degraded: keyword leg is down" in result.stderr
    assert server.sent("POST", "/v1/search")[0][1] == {
        "query": "leave",
        "space": "handbook",
        "limit": 3,
        "explain": True,
    }
    assert json.loads(perdure("search", "leave", "--space", "handbook", "--json").stdout) == reply


def test_a_list_is_gathered_over_its_pages(server: ContractServer, perdure: Perdure) -> None:
    page = {
        "items": [{"id": f"d{n}", "external_id": "x" * 200, "state": "ready"} for n in range(100)],
        "next_cursor": "c",
    }
    server.replies[("GET", "/v1/documents")] = (200, page)

    found = json.loads(perdure("documents", "list", "--limit", "150", "--json").stdout)

    assert len(found["items"]) == 200  # this server does not heed the page size
    assert found["next_cursor"] == "c"
    shown = perdure("documents", "list", "--limit", "100").stdout
    assert "x" * 200 in shown  # what is piped is not cut
    assert not any(line.endswith("…") for line in shown.splitlines())


def test_watch_prints_one_event_a_line_and_ends_with_the_run(server: ContractServer, perdure: Perdure) -> None:
    server.replies[("GET", "/v1/runs/r1")] = (200, {"id": "r1"})
    server.events = [("1.1", "stage", {"stage": "parsing"}), ("1.2", "run.cancelled", {"by": "user:u1"})]

    result = perdure("runs", "watch", "r1", "--json")

    assert result.exit_code == 3
    assert [line["type"] for line in json_lines(result)] == ["stage", "run.cancelled"]
    assert "error: The run was cancelled. (cancelled)" in result.stderr


def test_doctor_shows_remedies_and_fails_on_an_error(server: ContractServer, perdure: Perdure) -> None:
    parts: list[dict[str, Any]] = [
        {"name": "postgres", "severity": "ok", "detail": "answers", "remedy": None, "needed": True},
        {
            "name": "kafka",
            "severity": "error",
            "detail": "does not answer",
            "remedy": "Start the broker.",
            "needed": False,
        },
    ]
    server.replies[("GET", "/v1/diagnostics")] = (200, {"items": parts, "next_cursor": None})

    result = perdure("doctor")

    assert result.exit_code == 3
    assert "kafka: Start the broker." in result.stdout
    parts[1]["severity"] = "warning"
    assert perdure("doctor").exit_code == 0


def test_removing_a_space_unasked_needs_yes(server: ContractServer, perdure: Perdure) -> None:
    result = perdure("spaces", "remove", "handbook")
    assert result.exit_code == 2
    assert not server.requests


def test_text_is_printed_exactly(server: ContractServer, perdure: Perdure) -> None:
    server.replies[("GET", "/v1/documents/d1/text")] = (200, "line\n\n[red] 中文")
    assert perdure("documents", "text", "d1").stdout == "line\n\n[red] 中文"


def test_an_expiry_is_counted_from_now() -> None:
    assert expiry("30d", datetime(2026, 1, 1, tzinfo=UTC)) == datetime(2026, 1, 31, tzinfo=UTC)
