"""The script behind `make eval` counts what a server that speaks the contract tells it."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType

import httpx
import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"
RIGHT = {
    "id": "leave",
    "question": "Leave?",
    "answerable": True,
    "documents": ["people/leave.md"],
    "must_contain": ["30 days"],
}
FOREIGN = {"id": "moon", "question": "Moon?", "answerable": False, "documents": [], "must_contain": []}


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module("ask_questions")


def server(*, refuses: bool, path: str) -> httpx.MockTransport:
    """Answers every question from one document, or refuses all."""
    citation = {"document_id": "d1", "quote": "People in Sweden get 30\ndays."}

    def reply(request: httpx.Request) -> httpx.Response:
        match request.method, request.url.path:
            case "POST", "/v1/answers":
                return httpx.Response(202, json={"run_id": "r1", "answer_id": "a1"})
            case "GET", "/v1/runs/r1/events":
                return httpx.Response(200, text="id: 1.1\nevent: run.succeeded\ndata: {}\n\n")
            case "GET", "/v1/answers/a1":
                citations = [] if refuses else [citation]
                return httpx.Response(200, json={"answered": not refuses, "answer": "[1]", "citations": citations})
            case "GET", "/v1/documents/d1":
                return httpx.Response(200, json={"external_id": path})
            case "POST", "/v1/search":
                assert json.loads(request.content)["space"] == "handbook"
                return httpx.Response(200, json={"hits": [{"document_id": "d1", "text": "get 30 days"}]})
        return httpx.Response(404)

    return httpx.MockTransport(reply)


def asked(asking: ModuleType, transport: httpx.MockTransport) -> dict[str, object]:
    with httpx.Client(base_url="http://server", transport=transport) as client:
        asker = asking.Asker(client, "handbook")
        summary: dict[str, object] = asking.summary(
            {each["id"]: asking.outcome(asker, each) for each in (RIGHT, FOREIGN)}
        )
        return summary


def test_right_answers_and_a_missing_refusal_are_told_apart(asking: ModuleType) -> None:
    result = asked(asking, server(refuses=False, path="handbook/people/leave.md"))
    assert result == {
        "questions": 2, "answered": 1, "facts_told": 1, "passage_found": 1, "refused": 0, "right_document": 1,
        "missed": {"refused": ["moon"]},
    }  # fmt: skip


def test_the_wrong_document_and_a_needless_refusal_count_as_misses(asking: ModuleType) -> None:
    wrong = asked(asking, server(refuses=False, path="people/otherleave.md"))
    assert (wrong["passage_found"], wrong["right_document"]) == (0, 0)
    refusing = asked(asking, server(refuses=True, path="people/leave.md"))
    assert (refusing["answered"], refusing["refused"]) == (0, 1)
