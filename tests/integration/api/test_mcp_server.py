"""The MCP server as the protocol's own client has it, over a port, in both of the protocol's eras."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent

from schemas.search import SearchHit
from services.container import Serving
from services.stores import answers_store
from services.stores.database import Database
from tests.integration.api.openai_clients import QUOTE, TEXT, Talk, ended, said, talking
from tests.integration.api.serving import FoundBefore, Person, person, space_of, upload

HIT = SearchHit(
    chunk_id="chunk-1", document_id="document-1", document_version=1, title="Leave", heading_path=["Rules"], page_start=None,
    page_end=None, start=9, end=17, text="30 days.", score=0.5,
)  # fmt: skip


@pytest.fixture
async def talk(container: Serving, member: Person) -> AsyncIterator[Talk]:
    async with talking(container, member) as talk:
        yield talk


@asynccontextmanager
async def connected(talk: Talk, who: Person | None = None, mode: str = "auto") -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {(who or talk.who).key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(f"{talk.base}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


async def answered(talk: Talk, run: str) -> None:
    """As an answer's last step writes it."""
    row = await talk.row(run)
    async with talk.database.begin(talk.who.tenant) as transaction:
        cited: Any = [_Cited()]
        await answers_store.store_result(
            transaction, row["subject"], answer=TEXT, answered=True, citations=cited, usage={"input_tokens": 1}
        )
    await talk.tell(run, *said(TEXT), *ended())


class _Cited:
    """A citation, as far as storing one needs it."""

    def model_dump(self) -> dict[str, Any]:
        return QUOTE


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_tools_are_listed_as_reading_and_called_in_every_era_of_the_protocol(
    talk: Talk, container: Serving, mode: str
) -> None:
    assert isinstance(container.search, FoundBefore)
    container.search.hits = [HIT]
    async with connected(talk, mode=mode) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["search", "read_document", "ask", "list_spaces"]
        assert all(tool.annotations and tool.annotations.read_only_hint and tool.output_schema for tool in tools)
        found = await client.call_tool("search", {"query": "lea\x00ve", "limit": 3})
    assert not found.is_error
    assert found.structured_content["hits"][0]["document_id"] == "document-1"
    assert text_of(found) == "Leave (document document-1, characters 9-17)\nRules\n30 days."
    (asked,) = container.search.asked
    assert (asked.query, asked.limit) == ("leave", 3)


async def test_a_document_and_the_spaces_are_read_with_the_keys_own_rights(
    talk: Talk, admin: Person, database: Database
) -> None:
    space = await space_of(admin)
    document = (await upload(admin, space))["document_id"]
    async with connected(talk) as members, connected(talk, admin) as admins:
        hidden = await members.call_tool("read_document", {"document_id": document})
        assert (hidden.is_error, text_of(hidden)) == (True, "There is no document with this id that this key can see.")
        waiting = await admins.call_tool("read_document", {"document_id": document})
        assert (waiting.is_error, "no readable version yet" in text_of(waiting)) == (True, True)
        assert (await members.call_tool("list_spaces")).structured_content == {"spaces": []}
        await admin.http.put(f"/v1/spaces/{space}/grants/tenant", json={"role": "viewer"})
        assert (await members.call_tool("list_spaces")).structured_content == {
            "spaces": [{"id": space, "name": "handbook"}]
        }


async def test_a_question_is_answered_with_its_sources(talk: Talk) -> None:
    async with connected(talk) as client:
        asking = asyncio.create_task(client.call_tool("ask", {"question": "How many days?"}))
        run = await talk.newest_run()
        await answered(talk, run)
        result = await asking
    assert result.structured_content["answer"] == TEXT
    assert result.structured_content["citations"] == [QUOTE]
    assert text_of(result) == f"{TEXT}\n\nSources:\n[1] Leave, page 2 (document document-1): “30 days.”"


async def test_an_answer_that_failed_or_may_not_be_read_is_an_error_in_the_problems_sentence(
    talk: Talk, admin: Person
) -> None:
    space = await space_of(admin)
    document = (await upload(admin, space))["document_id"]
    async with connected(talk) as client:
        asking = asyncio.create_task(client.call_tool("ask", {"question": "How many days?"}))
        run = await talk.newest_run()
        await talk.tell(
            run, ("run.failed", {"code": "model_unavailable", "detail": "The model is away", "retryable": True})
        )
        failed = await asking
        assert (failed.is_error, text_of(failed)) == (True, "The model is away.")
        asking = asyncio.create_task(client.call_tool("ask", {"question": "How many days?"}))
        run = await talk.newest_run(besides=run)
        await talk.comes_from(run, document)
        await answered(talk, run)
        withheld = await asking
    assert (withheld.is_error, "may not read now" in text_of(withheld)) == (True, True)


@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        ("search", {}, "query: Field required."),
        ("search", {"query": ""}, "query: String should have at least 1 character."),
        ("search", {"query": "a", "limit": 51}, "limit: Input should be less than or equal to 50."),
        ("search", {"query": "a", "colour": "red"}, "colour: Extra inputs are not permitted."),
        ("ask", {"question": "a", "space": "nowhere"}, "There is no space 'nowhere' that this key can see."),
        ("ask", {"question": " "}, "A question has 1 to 8000 characters (PERDURE_ANSWERS__QUESTION_CHARS=8000)."),
        ("ask", {"question": "a\x00b", "space": "no\x00where"}, "There is no space 'nowhere' that this key can see."),
    ],
)
async def test_arguments_that_do_not_fit_are_an_error_that_a_model_can_act_on(
    talk: Talk, tool: str, arguments: dict[str, Any], sentence: str
) -> None:
    async with connected(talk) as client:
        result = await client.call_tool(tool, arguments)
    assert (result.is_error, text_of(result)) == (True, sentence)
    assert await talk.runs() == 0


async def test_what_nobody_foresaw_says_nothing_of_the_inside(talk: Talk, container: Serving) -> None:
    async def break_down(*_: object) -> None:
        raise RuntimeError("password=hunter2")

    object.__setattr__(container, "search", type("Broken", (), {"search": break_down})())
    async with connected(talk) as client:
        result = await client.call_tool("search", {"query": "a"})
        with pytest.raises(MCPError, match="no tool 'write_document'"):
            await client.call_tool("write_document", {})
    assert (result.is_error, "hunter2" in text_of(result)) == (True, False)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_leaving_stops_an_answer_that_nobody_waits_for(talk: Talk, mode: str) -> None:
    async with connected(talk, mode=mode) as client:
        asking = asyncio.create_task(client.call_tool("ask", {"question": "How many days?"}))
        run = await talk.newest_run()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    assert await talk.cancelled(run)


async def test_every_request_needs_a_key_that_may_read_and_nothing_but_post_is_served(
    talk: Talk, database: Database
) -> None:
    writer = await person(database, talk.who.http._transport.app, scopes=["write"])  # type: ignore[attr-defined]
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with httpx.AsyncClient(base_url=talk.base) as http:
        for key, status in ((None, 401), ("prd_wrong", 401), (writer.key, 403)):
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            reply = await http.post("/mcp", json=ping, headers=headers)
            assert (reply.status_code, reply.headers["content-type"]) == (status, "application/problem+json")
        headers = {"Authorization": f"Bearer {talk.who.key}"}
        for method in ("GET", "DELETE"):
            refused = await http.request(method, "/mcp", headers=headers)
            assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
        accept = {**headers, "Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        for body in (b"{", b"[]", b"[" * 100_000):
            assert (await http.post("/mcp", content=body, headers=accept)).status_code == 400
    assert "/mcp" not in (await talk.who.http.get("/openapi.json")).json()["paths"]
