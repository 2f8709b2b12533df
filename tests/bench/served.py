"""A real `perdure up` of one figure, spoken to over HTTP and looked at in its Postgres."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import psycopg
from psycopg.rows import dict_row
from sqlalchemy import make_url

from tests.bench.measuring import Bench
from tests.running.processes import PerdureProcess

SPACE = "bench"
LOOK_EVERY_S = 0.02
SETTLE_S = 3.0
"""After the ready line: background sentences are embedded, consumers join, caches fill."""


@dataclass(frozen=True)
class Event:
    type: str
    data: Any


@dataclass
class Served:
    """`http` and `facts` are good until the process ends."""

    perdure: PerdureProcess
    http: httpx.AsyncClient
    facts: psycopg.AsyncConnection[dict[str, Any]]

    async def upload(self, texts: dict[str, str]) -> list[dict[str, Any]]:
        """One request; the receipts in order."""
        files = [("file", (name, text.encode(), "text/markdown")) for name, text in texts.items()]
        reply = await self.http.post("/documents", data={"space": SPACE}, files=files)
        reply.raise_for_status()
        receipts: list[dict[str, Any]] = reply.json()["documents"]
        return receipts

    async def rows(self, query: str, *parameters: Any) -> list[dict[str, Any]]:
        cursor = await self.facts.execute(query.encode(), parameters)
        return await cursor.fetchall()

    async def until(self, query: str, *parameters: Any, within_s: float = 600) -> list[dict[str, Any]]:
        """The rows as soon as there are any."""
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            if found := await self.rows(query, *parameters):
                return found
            await asyncio.sleep(LOOK_EVERY_S)
        raise TimeoutError(f"nothing within {within_s:.0f} s: {query}\n{self.perdure.log()[-2000:]}")

    async def until_ended(self, run_ids: Sequence[str], within_s: float = 1_200) -> list[dict[str, Any]]:
        """The runs' rows once all have ended; AssertionError when one did not succeed."""
        some_open = "SELECT count(*) FILTER (WHERE ended_at IS NULL) AS open FROM runs WHERE id = ANY(%s)"
        await self.until(f"SELECT 1 FROM ({some_open}) AS them WHERE open = 0", list(run_ids), within_s=within_s)
        rows = await self.rows("SELECT * FROM runs WHERE id = ANY(%s)", list(run_ids))
        failed = [row["error"] for row in rows if row["state"] != "succeeded"]
        assert not failed, failed
        return rows

    async def ingest(self, texts: dict[str, str]) -> list[dict[str, Any]]:
        """Uploaded and ready."""
        receipts = await self.upload(texts)
        await self.until_ended([receipt["run_id"] for receipt in receipts])
        return receipts

    async def search(self, query: str) -> float:
        """Seconds one search took, seen by the caller."""
        started = time.perf_counter()
        reply = await self.http.post("/search", json={"query": query, "space": SPACE})
        took_s = time.perf_counter() - started
        reply.raise_for_status()
        assert not reply.json()["degraded"], reply.json()["degraded"]
        return took_s

    @asynccontextmanager
    async def events(self, run_id: str) -> AsyncIterator[AsyncIterator[Event]]:
        async with self.http.stream("GET", f"/runs/{run_id}/events") as response:
            response.raise_for_status()
            yield read_events(response)


async def read_events(response: httpx.Response) -> AsyncIterator[Event]:
    """Server-sent events as they arrive."""
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            yield Event(fields["event"], json.loads(fields["data"]))
            fields = {}


@asynccontextmanager
async def connected(perdure: PerdureProcess) -> AsyncIterator[Served]:
    """Client and connection to a process that is ready; leaving it leaves the process alone."""
    url = make_url(perdure.info["database_url"]).set(drivername="postgresql").render_as_string(hide_password=False)
    headers = {"Authorization": f"Bearer {perdure.key}"}
    facts = await psycopg.AsyncConnection.connect(url, autocommit=True, row_factory=dict_row)
    try:
        await facts.execute("SELECT set_config('perdure.tenant', '*', false)")
        async with httpx.AsyncClient(
            base_url=f"{perdure.url}/v1", headers=headers, timeout=120, trust_env=False
        ) as http:
            yield Served(perdure, http, facts)
    finally:
        await facts.close()


@asynccontextmanager
async def serving(bench: Bench, name: str, env: Mapping[str, str] | None = None) -> AsyncIterator[Served]:
    """A fresh `perdure up` with an empty space, settled; stopped and its data removed at the end."""
    perdure = PerdureProcess(bench.folder / name, env)
    try:
        await asyncio.to_thread(perdure.start)
        async with connected(perdure) as served:
            (await served.http.post("/spaces", json={"name": SPACE})).raise_for_status()
            await asyncio.sleep(SETTLE_S)
            yield served
    finally:
        await asyncio.to_thread(perdure.stop)
        shutil.rmtree(perdure.data_dir, ignore_errors=True)
