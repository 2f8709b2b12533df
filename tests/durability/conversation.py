"""What a durability test says to a running Perdure over HTTP."""

from __future__ import annotations

import contextlib
from typing import Any

import httpx

from schemas.identifiers import new_id
from tests.durability.facts import Facts
from tests.running.processes import PerdureProcess, wait_until

SPACE = "durable"
PATIENCE_S = 150.0
"""How long a machine that is busy with other things may take; a test that passes never waits for it."""


def facts_of(perdure: PerdureProcess) -> Facts:
    return Facts(perdure.info["database_url"])


def make_space(perdure: PerdureProcess) -> None:
    """The space all tests of a module write to; once is enough."""
    with perdure.client() as client:
        if client.get(f"/spaces/{SPACE}").status_code == 404:
            client.post("/spaces", json={"name": SPACE}).raise_for_status()


def upload(perdure: PerdureProcess, name: str, text: str) -> dict[str, Any]:
    """The receipt of one uploaded Markdown file."""
    with perdure.client() as client:
        reply = client.post("/documents", data={"space": SPACE}, files={"file": (name, text.encode(), "text/markdown")})
    assert reply.status_code == 202, reply.text
    receipt: dict[str, Any] = reply.json()["documents"][0]
    return receipt


def perhaps(act: Any, *arguments: Any) -> Any:
    """The reply, or None when the server died while it was asked: what it did must be found again later."""
    with contextlib.suppress(httpx.TransportError):
        return act(*arguments)
    return None


def remove(perdure: PerdureProcess, document_id: str) -> str:
    with perdure.client() as client:
        reply = client.delete(f"/documents/{document_id}")
    assert reply.status_code == 202, reply.text
    return str(reply.json()["run_id"])


def ask(perdure: PerdureProcess, question: str, model: str = "extractive", once: str | None = None) -> dict[str, Any]:
    """`once` is the Idempotency-Key."""
    headers = {"Idempotency-Key": once} if once else {}
    with perdure.client() as client:
        body = {"question": question, "space": SPACE, "model": model}
        reply = client.post("/answers", json=body, headers=headers)
    assert reply.status_code == 202, reply.text
    started: dict[str, Any] = reply.json()
    return started


def make_session(perdure: PerdureProcess, **agent: Any) -> str:
    """A session with an agent of its own."""
    with perdure.client() as client:
        made = client.post("/agents", json={"name": f"agent {new_id()}", **agent})
        assert made.status_code == 201, made.text
        session = client.post("/sessions", json={"agent_id": made.json()["id"]})
    assert session.status_code == 201, session.text
    return str(session.json()["id"])


def say(perdure: PerdureProcess, session_id: str, text: str, **fields: Any) -> str:
    """The run that will answer."""
    with perdure.client() as client:
        reply = client.post(f"/sessions/{session_id}/messages", json={"text": text, **fields})
    assert reply.status_code == 202, reply.text
    return str(reply.json()["run_id"])


def pending_approval(perdure: PerdureProcess, run_id: str, within_s: float = PATIENCE_S) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        with perdure.client() as client:
            found = client.get("/approvals", params={"state": "pending"})
        return next((each for each in found.json()["items"] if each["run_id"] == run_id), None)

    return wait_until(look, within_s)


def decide(perdure: PerdureProcess, approval_id: str, **decision: Any) -> dict[str, Any]:
    with perdure.client() as client:
        reply = client.post(f"/approvals/{approval_id}/decision", json=decision)
    assert reply.status_code == 200, reply.text
    decided: dict[str, Any] = reply.json()
    return decided


def document(perdure: PerdureProcess, document_id: str) -> dict[str, Any] | None:
    """None when it is a 404."""
    with perdure.client() as client:
        reply = client.get(f"/documents/{document_id}")
    if reply.status_code == 404:
        return None
    reply.raise_for_status()
    found: dict[str, Any] = reply.json()
    return found


def wait_for_state(
    perdure: PerdureProcess, document_id: str, *states: str, within_s: float = PATIENCE_S
) -> dict[str, Any]:
    seen: list[str] = []

    def look() -> dict[str, Any] | None:
        try:
            found = document(perdure, document_id)
        except httpx.HTTPStatusError as error:
            if error.response.status_code != 503:
                raise
            return None  # an engine is being started again
        assert found is not None
        seen.append(f"{found['state']}: {found['error']}")
        return found if found["state"] in states else None

    try:
        return wait_until(look, within_s)
    except TimeoutError:
        raise AssertionError(f"{document_id} is not {states} but {seen[-1]}\n{perdure.log()[-3000:]}") from None


def wait_for_all_runs(perdure: PerdureProcess, within_s: float = PATIENCE_S) -> None:
    facts = facts_of(perdure)
    try:
        wait_until(lambda: not facts.open_runs(), within_s)
    except TimeoutError:
        raise AssertionError(f"still open: {facts.open_runs()}\n{perdure.log()[-3000:]}") from None


def history(perdure: PerdureProcess, document_id: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    cursor: str | None = None
    with perdure.client() as client:
        while True:
            page = client.get(
                f"/documents/{document_id}/history", params={"limit": 100, **({"cursor": cursor} if cursor else {})}
            )
            page.raise_for_status()
            items += page.json()["items"]
            cursor = page.json()["next_cursor"]
            if cursor is None:
                return items


def search(perdure: PerdureProcess, query: str, limit: int = 20) -> list[dict[str, Any]]:
    with perdure.client() as client:
        reply = client.post("/search", json={"query": query, "space": SPACE, "limit": limit})
    reply.raise_for_status()
    hits: list[dict[str, Any]] = reply.json()["hits"]
    return hits
