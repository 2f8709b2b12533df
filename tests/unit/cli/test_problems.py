"""A problem is one line on stderr with its type and what to do; never a traceback."""

from __future__ import annotations

import pytest

from tests.unit.cli.conftest import Perdure
from tests.unit.cli.contract_server import ContractServer

SEARCH = ("POST", "/v1/search")


@pytest.mark.parametrize(
    ("status", "kind", "told"),
    [
        (403, "forbidden", "perdure spaces grant"),
        (404, "not_found", "this key sees only what it may read"),
        (413, "too_large", "PERDURE_LIMITS__UPLOAD_BYTES"),
        (503, "unavailable", "perdure doctor"),
        (500, "internal", "perdure doctor"),
        (404, "urn:perdure:problem:not_found", "this key sees only what it may read"),
    ],
)
def test_a_problem_is_one_line_with_its_remedy(
    server: ContractServer, perdure: Perdure, status: int, kind: str, told: str
) -> None:
    server.replies[SEARCH] = (status, {"type": kind, "status": status, "detail": "One\nsentence."})

    result = perdure("search", "q", "--space", "handbook", "--json")

    assert result.exit_code == 1
    assert result.stdout == ""
    line, remedy = result.stderr.splitlines()
    assert line == f"error: One sentence. ({kind.removeprefix('urn:perdure:problem:')})"
    assert told in remedy
    assert len(server.sent(*SEARCH)) == 1


def test_a_proxys_page_instead_of_an_answer_is_said_plainly(server: ContractServer, perdure: Perdure) -> None:
    server.replies[SEARCH] = (502, "<html>Bad gateway</html>")
    assert "error: The server answered 502. (unavailable)" in perdure("search", "q", "--space", "handbook").stderr
    server.replies[SEARCH] = (200, "<html>Welcome</html>")
    assert "(not_perdure)" in perdure("search", "q", "--space", "handbook").stderr


def test_a_reply_of_another_version_is_said_plainly(server: ContractServer, perdure: Perdure) -> None:
    server.replies[SEARCH] = (200, {"found": []})
    result = perdure("search", "q", "--space", "handbook")
    assert result.exit_code == 1
    assert "(unknown_reply)" in result.stderr
