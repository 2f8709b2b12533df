"""What agents cost: a step of a turn that reads, a decision until the turn goes on, a stop, and a sandbox."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

from services.gateways.e2b_sandboxes import E2bSandboxes
from tests.bench.measuring import Bench, Measured, percentile, say, spread
from tests.bench.served import SPACE, Served, serving
from tests.fakes.openai_server import OpenAIServer, Reply
from tests.integration.sandboxes.server_process import SandboxServer

MODEL = "openai-chat:scripted"
STEPS = 20
TOOLS = ["read_document", "write_document"]


async def measure(bench: Bench) -> Measured:
    async with OpenAIServer() as model, _with_agents(bench, model) as (served, document_id):
        await _turn(served, model, document_id)  # the provider's client is imported, plans are prepared
        steps_ms = [each for _ in range(bench.times(6, 2)) for each in await _turn(served, model, document_id)]
        say(f"a step that reads: {percentile(steps_ms, 0.5):.1f} ms")
        approved_ms = [await _approval(served, model, number) for number in range(bench.times(20, 5))]
        say(f"approved until it goes on: {percentile(approved_ms, 0.95):.0f} ms")
        stopped_ms = [await _stop(served, model) for _ in range(bench.times(20, 5))]
        say(f"stopped: {percentile(stopped_ms, 0.95):.0f} ms")
    created_ms, commands_ms = await _sandboxes(bench)
    say(f"a sandbox: {percentile(created_ms, 0.5):.0f} ms, a command: {percentile(commands_ms, 0.5):.0f} ms")
    return {
        "agent_read_step_ms": round(percentile(steps_ms, 0.5), 1),
        "approve_to_continue_ms_p95": round(percentile(approved_ms, 0.95), 1),
        "stop_ms_p95": round(percentile(stopped_ms, 0.95), 1),
        "sandbox_create_ms_p50": round(percentile(created_ms, 0.5), 1),
        "sandbox_command_ms_p50": round(percentile(commands_ms, 0.5), 1),
        "raw": {
            "read_step_ms": spread(steps_ms),
            "approved_ms": spread(approved_ms, 1),
            "stopped_ms": spread(stopped_ms, 1),
            "sandbox_create_ms": spread(created_ms, 1),
            "sandbox_command_ms": spread(commands_ms, 1),
        },
    }


@asynccontextmanager
async def _with_agents(bench: Bench, model: OpenAIServer) -> AsyncIterator[tuple[Served, str]]:
    env = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "scripted"}
    async with serving(bench, "agents", env) as served:
        (receipt,) = await served.ingest(
            {"policy.md": "# Policy\n\n" + "Travel is approved by the head of finance. " * 40}
        )
        yield served, str(receipt["document_id"])


async def _session(served: Served) -> str:
    draft = {"name": f"agent {time.time_ns()}", "tools": TOOLS, "model": MODEL, "limits": {"iterations": 100}}
    agent = (await served.http.post("/agents", json=draft)).raise_for_status().json()
    return str((await served.http.post("/sessions", json={"agent_id": agent["id"]})).raise_for_status().json()["id"])


async def _say(served: Served, text: str) -> str:
    session = await _session(served)
    reply = await served.http.post(f"/sessions/{session}/messages", json={"text": text})
    return str(reply.raise_for_status().json()["run_id"])


async def _turn(served: Served, model: OpenAIServer, document_id: str) -> list[float]:
    """Milliseconds from one reading's result to the next one's: a model call, a tool call, and all that is kept of them."""
    reads = [
        Reply(calls=[{"name": "read_document", "arguments": json.dumps({"document_id": document_id, "start": place})}])
        for place in range(STEPS)
    ]
    model.plan("read", *reads, Reply(text="Done."))
    run_id = await _say(served, "[[read]] Read it.")
    await served.until_ended([run_id])
    told = "SELECT at FROM run_events WHERE run_id = %s AND type = 'tool.result' ORDER BY seq"
    times = [row["at"] for row in await served.rows(told, run_id)]
    assert len(times) == STEPS, f"{len(times)} results"
    return [(later - earlier).total_seconds() * 1_000 for earlier, later in pairwise(times)]


async def _approval(served: Served, model: OpenAIServer, number: int) -> float:
    """From the decision that is sent until the call's result reaches the stream."""
    written = {"space": SPACE, "external_id": f"{number}.md", "title": "Note", "text": f"Note {number}."}
    model.plan(
        "write", Reply(calls=[{"name": "write_document", "arguments": json.dumps(written)}]), Reply(text="Done.")
    )
    run_id, decided_at = await _say(served, "[[write]] Write it."), None
    async with served.events(run_id) as events:
        async for event in events:
            if event.type == "approval.requested":
                await asyncio.sleep(0.3)  # the request's own workflow has come to wait
                decided_at = time.perf_counter()
                path = f"/approvals/{event.data['approval_id']}/decision"
                (await served.http.post(path, json={"decision": "approve"})).raise_for_status()
            if event.type == "tool.result" and decided_at is not None:
                took_ms = (time.perf_counter() - decided_at) * 1_000
                await served.until_ended([run_id])
                return took_ms
    raise AssertionError(f"run {run_id} did not go on")


async def _stop(served: Served, model: OpenAIServer) -> float:
    """From the cancel that is sent, in the middle of a reply, until the stream's last event."""
    model.plan("talk", Reply(text="word " * 5_000, delay_s=0.02))
    run_id, asked_at = await _say(served, "[[talk]] Talk."), None
    async with served.events(run_id) as events:
        async for event in events:
            if event.type == "token" and asked_at is None:
                asked_at = time.perf_counter()
                (await served.http.post(f"/runs/{run_id}/cancel")).raise_for_status()
            if event.type == "run.cancelled" and asked_at is not None:
                return (time.perf_counter() - asked_at) * 1_000
    raise AssertionError(f"run {run_id} was not stopped")


async def _sandboxes(bench: Bench) -> tuple[list[float], list[float]]:
    """Milliseconds until a sandbox is made, and of `true` in one, through the client."""
    folder = bench.folder / "sandboxes"
    folder.mkdir()
    server = await asyncio.to_thread(SandboxServer(folder).start)
    try:
        options: dict[str, Any] = server.sdk_options
        client = E2bSandboxes(options["api_key"], url=options["api_url"])
        created_ms, commands_ms = [], []
        for number in range(bench.times(15, 4)):
            began = time.perf_counter()
            sandbox = await client.create({"number": str(number)})
            created_ms.append((time.perf_counter() - began) * 1_000)
            await client.run(sandbox, "true", timeout_s=10)
            for _ in range(4):
                began = time.perf_counter()
                await client.run(sandbox, "true", timeout_s=10)
                commands_ms.append((time.perf_counter() - began) * 1_000)
            await client.kill(sandbox)
    finally:
        await asyncio.to_thread(server.stop)
    return created_ms, commands_ms
