"""`perdure up --demo`: loads the example handbook and asks three questions, through the API like anyone else."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import IO, Any

import httpx

EXAMPLES = Path(__file__).parent.parent / "examples"
SPACE = "handbook"
LOOK_EVERY_S = 0.2
PATIENCE_S = 300.0
_ENDED = {"ready", "failed", "cancelled", "superseded"}


async def show(api_url: str, key: str, out: IO[str]) -> None:
    """Says what it does on `out`; a second start finds the documents unchanged and only asks."""
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=f"{api_url}/v1", headers=headers, timeout=60, trust_env=False) as api:
        await _ensure_space(api)
        await _load(api, out)
        for question in _demo_questions():
            await _ask(api, question, out)
    print(
        "\nAsk your own:  .venv/bin/perdure ask 'How many days of annual leave are there?' --space handbook", file=out
    )


async def _ensure_space(api: httpx.AsyncClient) -> None:
    listed = (await api.get("/spaces", params={"limit": 100})).raise_for_status().json()
    if not any(space["name"] == SPACE for space in listed["items"]):
        (await api.post("/spaces", json={"name": SPACE})).raise_for_status()


async def _load(api: httpx.AsyncClient, out: IO[str]) -> None:
    files = sorted(path for path in (EXAMPLES / "handbook").rglob("*") if path.is_file())
    print(f"\nLoading {len(files)} files of {EXAMPLES.name}/handbook:", file=out, flush=True)
    waiting: dict[str, str] = {}
    for path in files:
        name = path.relative_to(EXAMPLES / "handbook").as_posix()
        sent = {"file": (path.name, path.read_bytes())}
        reply = await api.post("/documents", data={"space": SPACE, "external_id": name}, files=sent)
        receipt = reply.raise_for_status().json()["documents"][0]
        waiting[receipt["document_id"]] = name
    deadline = asyncio.get_running_loop().time() + PATIENCE_S
    while waiting and asyncio.get_running_loop().time() < deadline:
        for document_id, name in list(waiting.items()):
            document = (await api.get(f"/documents/{document_id}")).raise_for_status().json()
            if document["state"] in _ENDED:
                problem = f"  {document['error']['detail']}" if document["error"] else ""
                print(f"  {document['state']:<9} {name}{problem}", file=out, flush=True)
                del waiting[document_id]
        await asyncio.sleep(LOOK_EVERY_S)


def _demo_questions() -> list[str]:
    questions: list[dict[str, Any]] = json.loads((EXAMPLES / "questions.json").read_text(encoding="utf-8"))
    return [each["question"] for each in questions if each.get("demo")]


async def _ask(api: httpx.AsyncClient, question: str, out: IO[str]) -> None:
    print(f"\n? {question}", file=out, flush=True)
    started = (await api.post("/answers", json={"question": question, "space": SPACE})).raise_for_status().json()
    async with api.stream("GET", f"/runs/{started['run_id']}/events", timeout=PATIENCE_S) as stream:
        async for _ in stream.aiter_lines():
            pass
    answer = (await api.get(f"/answers/{started['answer_id']}")).raise_for_status().json()
    print(answer["answer"], file=out)
    for citation in answer["citations"]:
        page = f", page {citation['page_start']}" if citation["page_start"] else ""
        print(f"  [{citation['n']}] {citation['title']}{page}", file=out, flush=True)
