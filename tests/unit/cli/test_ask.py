"""An answer survives dropped streams and resets, and ends with its citations."""

from __future__ import annotations

import json

import pytest

from tests.unit.cli.conftest import Perdure
from tests.unit.cli.contract_server import ContractServer

STARTED = {"run_id": "r1", "answer_id": "a1"}
EVENTS = [
    ("1.1", "run.started", {"kind": "answer", "policies": {}}),
    ("1.2", "sources", [{"n": 1, "document_id": "d1", "title": "Security", "page_start": 3},
                        {"n": 2, "document_id": "d2", "title": "Travel", "page_start": None}]),
    ("1.3", "token", {"text": "Wrong "}),
    ("2.4", "answer.reset", {}),
    ("2.5", "token", {"text": "Within one\u2028"}),
    ("2.6", "token", {"text": "day [1]."}),
    ("2.7", "answer.text", {"text": "Within one day [1]."}),
    ("2.8", "citations", []),
    ("2.9", "run.succeeded", {}),
]  # fmt: skip


@pytest.fixture(autouse=True)
def answering(server: ContractServer) -> None:
    server.events = list(EVENTS)
    server.replies[("POST", "/v1/answers")] = (202, STARTED)
    server.replies[("GET", "/v1/answers/a1")] = (200, server.answer)


def test_the_answer_and_its_citations_are_printed(perdure: Perdure) -> None:
    result = perdure("ask", "When?", "--space", "handbook")

    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "Within one day [1].",
        "",
        "Citations",
        "[1] Security, page 3",
        "    “Report it within one day.”",
        "",
        "Also read: Travel",
    ]


@pytest.mark.parametrize("cut", range(len(EVENTS)))
def test_a_stream_cut_at_any_event_resumes_after_the_last_whole_one(
    server: ContractServer, perdure: Perdure, cut: int
) -> None:
    server.faults.drops = [cut]

    result = perdure("ask", "When?", "--space", "handbook", "--json")

    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == server.answer
    first, second = server.sent("GET", "/v1/runs/r1/events")
    assert "last-event-id" not in first[0]
    assert second[0].get("last-event-id") == (EVENTS[cut - 1][0] if cut else None)


def test_the_question_is_sent_once_under_a_key(server: ContractServer, perdure: Perdure) -> None:
    perdure("ask", "When?", "--space", "handbook", "--model", "extractive")

    ((headers, body),) = server.sent("POST", "/v1/answers")
    assert headers["idempotency-key"]
    assert body == {"question": "When?", "space": "handbook", "model": "extractive"}


def test_a_failed_run_gives_exit_code_3_and_its_reason(server: ContractServer, perdure: Perdure) -> None:
    failed = {"code": "model_unavailable", "detail": "The model did not answer.", "retryable": True}
    server.events = [EVENTS[0], ("1.2", "run.failed", failed)]

    result = perdure("ask", "When?", "--space", "handbook")

    assert result.exit_code == 3
    assert result.stdout == ""
    assert result.stderr.startswith("error: The model did not answer. (model_unavailable)\n")


def test_an_answer_that_may_no_longer_be_read_shows_no_text(server: ContractServer, perdure: Perdure) -> None:
    server.events = [EVENTS[0], ("1.2", "sources", {"withheld": True}), ("1.3", "run.succeeded", {})]
    server.answer |= {"withheld": True, "answer": None, "question": None, "citations": []}
    server.replies[("GET", "/v1/answers/a1")] = (200, server.answer)

    result = perdure("ask", "When?", "--space", "handbook")

    assert result.exit_code == 0
    assert "withheld" in result.stdout


def test_control_characters_of_a_document_never_reach_the_terminal(server: ContractServer, perdure: Perdure) -> None:
    server.answer |= {"answer": "red \x1b[31m and \u202eflipped"}
    server.replies[("GET", "/v1/answers/a1")] = (200, server.answer)

    result = perdure("ask", "When?", "--space", "handbook")

    assert "\x1b" not in result.stdout
    assert "\u202e" not in result.stdout
