"""OpenAI's own client against a served API, and the other end: a run whose events a test writes, as activities do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from openai import AsyncOpenAI

from schemas.identifiers import run_stream
from services.container import Serving
from services.stores import answers_store, runs_store, sessions_store
from services.stores.database import Database, Row
from tests.integration.api.served import serve
from tests.integration.api.serving import Person, tell

QUOTE: dict[str, Any] = {
    "n": 1, "document_id": "document-1", "document_version": 1, "chunk_id": "chunk-1", "title": "Leave", "page_start": 2,
    "page_end": 2, "start": 9, "end": 17, "quote": "30 days.",
}  # fmt: skip
TEXT = "You have 30 days [1]."
SUCCEEDED: tuple[str, dict[str, Any]] = ("run.succeeded", {})


def said(*words: str) -> list[tuple[str, dict[str, Any]]]:
    return [("token", {"text": word}) for word in words]


def ended(text: str = TEXT, citations: list[dict[str, Any]] | None = None, **usage: Any) -> list[tuple[str, Any]]:
    """What the last step of an answer or a turn writes."""
    tokens = {"input_tokens": 11, "output_tokens": 5, "cost": None, **usage}
    cited = [QUOTE] if citations is None else citations
    return [("answer.text", {"text": text}), ("citations", cited), ("usage", tokens), SUCCEEDED]


@dataclass
class Talk:
    """Somebody's client, and their runs."""

    base: str
    who: Person
    database: Database
    client: AsyncOpenAI

    async def newest_run(self, besides: str | None = None) -> str:
        """As soon as the request under way has made it."""
        async with asyncio.timeout(10):
            while True:
                runs = (await self.who.http.get("/v1/runs", params={"limit": 1})).json()["items"]
                if runs and runs[0]["id"] != besides:
                    return str(runs[0]["id"])
                await asyncio.sleep(0.02)

    async def runs(self) -> int:
        return len((await self.who.http.get("/v1/runs")).json()["items"])

    async def tell(self, run_id: str, *drafts: tuple[str, Any]) -> None:
        await tell(self.database, self.who.tenant, run_id, *drafts)

    async def row(self, run_id: str) -> Row:
        async with self.database.begin(self.who.tenant) as transaction:
            row = await runs_store.get(transaction, run_id)
        assert row is not None
        return row

    async def asked(self, run_id: str) -> dict[str, Any]:
        """The stored request of an answer."""
        async with self.database.begin(self.who.tenant) as transaction:
            run = await runs_store.get(transaction, run_id)
            assert run is not None
            row = await answers_store.get(transaction, run["subject"])
        assert row is not None
        request: dict[str, Any] = row["request"]
        return request

    async def message(self, run_id: str) -> str:
        """What a turn was sent."""
        async with self.database.begin(self.who.tenant) as transaction:
            (row,) = await sessions_store.of_run(transaction, run_id)
        return str(row["text"])

    async def comes_from(self, run_id: str, document_id: str) -> None:
        async with self.database.begin(self.who.tenant) as transaction:
            await answers_store.record_sources(transaction, [run_stream(run_id)], [(document_id, 1)])

    async def agent(self, name: str = "clerk", **fields: Any) -> str:
        """The name of its model."""
        draft = {"name": name, "tools": ["list_documents"], "model": "openai-chat:any", **fields}
        reply = await self.who.http.post("/v1/agents", json=draft)
        assert reply.status_code == 201, reply.text
        return f"perdure/agent/{name}"

    async def cancelled(self, run_id: str, *, within_s: float = 5) -> bool:
        """Whether the run is asked to stop."""
        for _ in range(int(within_s / 0.05)):
            if (await self.row(run_id))["cancel_requested_at"] is not None:
                return True
            await asyncio.sleep(0.05)
        return False


@asynccontextmanager
async def talking(container: Serving, who: Person) -> AsyncIterator[Talk]:
    """Served on a port of its own. The client does not try again by itself unless a test lets it."""
    async with (
        serve(container) as base,
        AsyncOpenAI(base_url=f"{base}/v1", api_key=who.key, max_retries=0, timeout=30) as client,
    ):
        yield Talk(base, who, container.database, client)
