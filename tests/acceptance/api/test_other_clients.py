"""OpenAI's and MCP's own clients against a real `perdure up`, with a model server that answers by script."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import httpx2
import openai
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent
from openai import AsyncOpenAI

from tests.running.processes import PerdureProcess, wait_until

SPACE = "travel"
POLICY = "# Travel\n\nTravel above 2,000 euro is approved by the head of finance, Pernilla Åberg.\n"
SAYS = "Travel above 2,000 euro is approved by the head of finance [1]."
ANSWERS = "perdure/answers"
AGENT = "perdure/agent/clerk"


def call(name: str, **arguments: Any) -> dict[str, str]:
    return {"name": name, "arguments": json.dumps(arguments)}


PLANS: dict[str, list[dict[str, Any]]] = {
    "answer": [{"text": SAYS, "thinking": "Who was it?", "delay_s": 0.03}],
    "broken": [{"status": 401, "error": {"message": "no such key", "type": "scripted", "code": None}}],
    "search": [{"text": "Let me look.", "calls": [call("search", query="who approves travel")]}, {"text": SAYS}],
    "again": [{"text": "As I said, the head of finance does."}],
    "write": [
        {"calls": [call("write_document", space=SPACE, external_id="note.md", title="Note", text="Ask Pernilla.")]},
        {"text": "The note is written."},
    ],
}


@dataclass(frozen=True)
class Running:
    """A Perdure with one document and one agent."""

    perdure: PerdureProcess
    document_id: str

    @property
    def openai(self) -> AsyncOpenAI:
        return AsyncOpenAI(base_url=f"{self.perdure.url}/v1", api_key=self.perdure.key, max_retries=0, timeout=60)


@pytest.fixture(scope="module")
def model_url() -> Iterator[str]:
    process = subprocess.Popen([sys.executable, "-m", "tests.fakes.openai_server"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        httpx.post(url.removesuffix("/v1") + "/script", json={"plans": PLANS}, trust_env=False).raise_for_status()
        yield url
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, model_url: str) -> Iterator[Running]:
    env = {"OPENAI_BASE_URL": model_url, "OPENAI_API_KEY": "scripted", "PERDURE_CHAT_MODEL": "openai-chat:scripted"}
    perdure = PerdureProcess(Path(tmp_path_factory.mktemp("clients")) / "data", env)
    try:
        perdure.start()
        yield Running(perdure, _filled(perdure))
    finally:
        perdure.stop()


def _filled(perdure: PerdureProcess) -> str:
    with perdure.client() as client:
        client.post("/spaces", json={"name": SPACE}).raise_for_status()
        tools = ["search", "read_document", "write_document"]
        client.post("/agents", json={"name": "clerk", "tools": tools, "mode": "ask"}).raise_for_status()
        file = {"file": ("travel.md", POLICY.encode(), "text/markdown")}
        document = client.post("/documents", data={"space": SPACE}, files=file).json()["documents"][0]["document_id"]
        wait_until(lambda: client.get(f"/documents/{document}").json()["state"] == "ready")
    return str(document)


@pytest.fixture
async def client(running: Running) -> AsyncIterator[AsyncOpenAI]:
    async with running.openai as client:
        yield client


@asynccontextmanager
async def mcp_client(running: Running) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {running.perdure.key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{running.perdure.url}/mcp", http_client=http)) as client,
    ):
        yield client


def question(plan: str) -> list[Any]:
    return [{"role": "user", "content": f"[[{plan}]] Who approves travel above 2,000 euro?"}]


async def test_the_models_are_the_answers_and_the_agent(client: AsyncOpenAI) -> None:
    assert [model.id async for model in client.models.list()] == [ANSWERS, AGENT]


async def test_an_answer_whole_and_streamed_is_the_stored_one_with_its_quotes(
    client: AsyncOpenAI, running: Running
) -> None:
    whole: Any = await client.chat.completions.create(model=ANSWERS, messages=question("answer"))
    assert whole.choices[0].message.content.strip() == SAYS
    (citation,) = whole.choices[0].message.citations
    assert citation["quote"] in POLICY
    assert whole.usage.total_tokens > 0
    stream: Any = await client.chat.completions.create(
        model=ANSWERS, messages=question("answer"), stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    assert "".join(delta.content or "" for delta in deltas).strip() == SAYS
    assert len([delta for delta in deltas if delta.content]) > 1
    assert any(getattr(delta, "reasoning_content", None) for delta in deltas)
    assert deltas[-1].citations[0]["document_id"] == running.document_id
    assert chunks[-1].usage.total_tokens == whole.usage.total_tokens


async def test_a_model_that_refuses_is_an_error_of_openais_shape(client: AsyncOpenAI) -> None:
    with pytest.raises(openai.APIStatusError) as caught:
        await client.chat.completions.create(model=ANSWERS, messages=question("broken"))
    assert caught.value.code
    assert caught.value.response.headers["x-should-retry"] == "false"
    with pytest.raises(openai.APIError):
        [chunk async for chunk in await client.chat.completions.create(
            model=ANSWERS, messages=question("broken"), stream=True)]  # fmt: skip


async def test_an_agent_calls_its_tools_here_and_its_response_is_gone_on_from(
    client: AsyncOpenAI, running: Running
) -> None:
    whole: Any = await client.chat.completions.create(model=AGENT, messages=question("search"))
    message = whole.choices[0].message
    assert message.content.replace(" ", "") == f"Let me look.\n\n{SAYS}".replace(" ", "")
    assert (message.tool_calls, message.citations[0]["document_id"]) == (None, running.document_id)
    async with client.responses.stream(model=AGENT, input=question("search")) as stream:
        events: list[Any] = [event async for event in stream]
        first: Any = await stream.get_final_response()
    told = {event.type for event in events}
    assert {
        "response.mcp_call.completed",
        "response.output_text.delta",
        "response.output_text.annotation.added",
    } <= told
    assert not any("function_call" in type for type in told)
    made = next(item for item in first.output if item.type == "mcp_call")
    assert (made.name, made.status, bool(made.output)) == ("search", "completed", True)
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert first.output_text == "".join(deltas)
    assert (await client.responses.retrieve(first.id)).output_text == first.output_text
    second = await client.responses.create(model=AGENT, input="[[again]] Who?", previous_response_id=first.id)
    assert second.output_text.strip() == "As I said, the head of finance does."


async def test_a_turn_that_waits_says_so_and_goes_on_once_somebody_has_decided(
    client: AsyncOpenAI, running: Running
) -> None:
    stream: Any = await client.chat.completions.create(model=AGENT, messages=question("write"), stream=True)
    text, decided = "", False
    with running.perdure.client() as http:
        async for chunk in stream:
            text += "".join(choice.delta.content or "" for choice in chunk.choices)
            if not decided and "/decision" in text:
                (request,) = http.get("/approvals", params={"state": "pending"}).json()["items"]
                assert request["id"] in text
                http.post(f"/approvals/{request['id']}/decision", json={"decision": "approve"}).raise_for_status()
                decided = True
        documents = http.get("/documents", params={"space": SPACE}).json()["items"]
    assert text.strip().endswith("The note is written.")
    assert "note.md" in {document["external_id"] for document in documents}


async def test_closing_a_stream_stops_the_turn_behind_it(client: AsyncOpenAI, running: Running) -> None:
    stream: Any = await client.chat.completions.create(model=AGENT, messages=question("write"), stream=True)
    run = stream.response.headers["x-run-id"]
    async for chunk in stream:
        if "/decision" in "".join(choice.delta.content or "" for choice in chunk.choices):
            break
    await stream.close()
    with running.perdure.client() as http:
        wait_until(lambda: http.get(f"/runs/{run}").json()["state"] == "cancelled")
    again = await client.responses.retrieve(f"resp_{run}")
    assert again.status == "cancelled"


async def test_mcp_finds_reads_and_answers(running: Running) -> None:
    async with mcp_client(running) as mcp:
        assert mcp.server_info is not None
        assert mcp.server_info.name == "perdure"
        spaces: Any = (await mcp.call_tool("list_spaces")).structured_content
        assert [space["name"] for space in spaces["spaces"]] == [SPACE]
        found = await mcp.call_tool("search", {"query": "who approves travel", "space": SPACE})
        assert found.structured_content["hits"][0]["document_id"] == running.document_id
        read: Any = await mcp.call_tool("read_document", {"document_id": running.document_id})
        (passage,) = read.structured_content["passages"]
        assert POLICY[passage["start"] : passage["end"]].strip() == passage["text"].strip()
        began = time.monotonic()
        asked = await mcp.call_tool("ask", {"question": "[[answer]] Who approves travel above 2,000 euro?"})
        assert time.monotonic() - began < 30
        answer: Any = asked.structured_content
        assert (answer["state"], answer["citations"][0]["document_id"]) == ("succeeded", running.document_id)
        (block,) = asked.content
        assert isinstance(block, TextContent)
        assert "Sources:\n[1]" in block.text
        gone = await mcp.call_tool("read_document", {"document_id": "nowhere"})
        assert gone.is_error
