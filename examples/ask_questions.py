"""Puts the questions of `questions.json` to a running Perdure and prints one JSON object of what came back.

    .venv/bin/python examples/ask_questions.py [--space handbook] [--data-dir .perdure]

Where the server is and which key opens it is found as the command `perdure` finds it.

Of the answerable questions: `passage_found`, the share whose right passage is among the first 8 hits of a search;
`answered`; `right_document`, cited by the answer; `facts_told`, by the answer or its quotes. Of the others: `refused`.
Each miss is listed by question id.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import httpx

from services.cli.connection import find_connection
from services.cli.exit_codes import ExitCode
from services.cli.failures import CliFailure

QUESTIONS = Path(__file__).parent / "questions.json"
ANSWER_TIMEOUT_S = 300
HITS = 8


class Asker:
    """Speaks to one server about one space."""

    def __init__(self, client: httpx.Client, space: str) -> None:
        self._client = client
        self._space = space
        self._paths: dict[str, str] = {}

    def _reply(self, method: str, path: str, **request: Any) -> Any:
        response = self._client.request(method, f"/v1{path}", **request)
        response.raise_for_status()
        return response.json()

    def passages(self, question: str) -> list[tuple[str, str]]:
        """(document's path, text) of the best hits."""
        body = {"query": question, "space": self._space, "limit": HITS}
        return [
            (self._path(hit["document_id"]), hit["text"]) for hit in self._reply("POST", "/search", json=body)["hits"]
        ]

    def answer(self, question: str) -> dict[str, Any]:
        """The finished answer; its run's event stream is read to its end."""
        started = self._reply("POST", "/answers", json={"question": question, "space": self._space})
        with self._client.stream("GET", f"/v1/runs/{started['run_id']}/events") as events:
            events.raise_for_status()
            for _ in events.iter_lines():
                pass
        answer: dict[str, Any] = self._reply("GET", f"/answers/{started['answer_id']}")
        answer["cited"] = {self._path(citation["document_id"]) for citation in answer.get("citations") or []}
        return answer

    def _path(self, document_id: str) -> str:
        if document_id not in self._paths:
            self._paths[document_id] = self._reply("GET", f"/documents/{document_id}")["external_id"]
        return self._paths[document_id]


def holds(text: str, strings: list[str]) -> bool:
    flat = " ".join(text.split())
    return all(string in flat for string in strings)


def is_one_of(path: str, documents: list[str]) -> bool:
    """The handbook may have been loaded from a folder above it, so its paths may have a longer beginning."""
    return any(path == document or path.endswith(f"/{document}") for document in documents)


def outcome(asker: Asker, question: dict[str, Any]) -> dict[str, bool]:
    """What was right about one question, by measure."""
    answer = asker.answer(question["question"])
    if not question["answerable"]:
        return {"refused": not answer["answered"]}
    passages = asker.passages(question["question"])
    documents, strings = question["documents"], question["must_contain"]
    told = " ".join([answer["answer"] or "", *(citation["quote"] for citation in answer.get("citations") or [])])
    return {
        "passage_found": any(is_one_of(path, documents) and holds(text, strings) for path, text in passages),
        "answered": bool(answer["answered"]),
        "right_document": any(is_one_of(path, documents) for path in answer["cited"]),
        "facts_told": holds(told, strings),
    }


def summary(outcomes: dict[str, dict[str, bool]]) -> dict[str, Any]:
    measures = sorted({name for each in outcomes.values() for name in each})
    seen = {name: [each[name] for each in outcomes.values() if name in each] for name in measures}
    missed = {name: [key for key, each in outcomes.items() if each.get(name) is False] for name in measures}
    shares = {name: round(sum(values) / len(values), 3) for name, values in seen.items()}
    return {"questions": len(outcomes), **shares, "missed": {name: ids for name, ids in missed.items() if ids}}


def main() -> int:
    parser = argparse.ArgumentParser(description="Put the example questions to a running Perdure.")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--space", default="handbook")
    options = parser.parse_args()
    questions = json.loads(QUESTIONS.read_text(encoding="utf-8"))
    try:
        server = find_connection(options.data_dir, os.environ)
        headers = {"Authorization": f"Bearer {server.key}"}
        with httpx.Client(base_url=server.url, headers=headers, timeout=ANSWER_TIMEOUT_S) as client:
            asker = Asker(client, options.space)
            outcomes = {question["id"]: outcome(asker, question) for question in questions}
    except CliFailure as failure:
        print(failure, failure.remedy or "", file=sys.stderr)
        return failure.exit_code
    except httpx.HTTPError as error:
        print(error, file=sys.stderr)
        return ExitCode.UNREACHABLE if isinstance(error, httpx.TransportError) else ExitCode.REFUSED
    print(json.dumps(summary(outcomes), ensure_ascii=False, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
