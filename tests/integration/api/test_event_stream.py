"""Streams of a run: resumed exactly from any process, withheld when access goes, ended when they are over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from schemas.identifiers import run_stream
from schemas.runs import RunEnd
from services.api.app import create_app
from services.container import Serving
from services.stores import answers_store, runs_store
from services.stores.database import Database
from tests.integration.api import serving
from tests.integration.api.served import open_stream, received, rest, serve, take
from tests.integration.api.serving import Person, person, space_of, stream_role, tell, upload

TOKENS = [("token", {"text": f"word{number} "}) for number in range(5)]
END: tuple[str, dict[str, Any]] = ("run.succeeded", {})


@pytest.fixture
async def base(container: Serving) -> AsyncIterator[str]:
    async with serve(container) as url:
        yield url


@pytest.fixture
def app(container: Serving, base: str) -> FastAPI:
    """People talk to the same container in-process; its hub belongs to the server here."""
    return create_app(container)


async def ask(who: Person) -> str:
    reply = await who.http.post("/v1/answers", json={"question": "How many days of leave?"})
    assert reply.status_code == 202, reply.text
    return str(reply.json()["run_id"])


async def test_events_come_as_they_are_written_and_the_stream_closes_after_the_end(
    base: str, member: Person, database: Database
) -> None:
    run = await ask(member)
    async with open_stream(base, member.key, run) as stream:
        await tell(database, "acme", run, ("run.started", {"kind": "answer", "policies": {}}))
        assert (await take(stream, 1))[0].event == "run.started"
        await tell(database, "acme", run, *TOKENS)
        tokens = await take(stream, 5)
        assert [each.data["text"] for each in tokens] == [data["text"] for _, data in TOKENS]
        await tell(database, "acme", run, ("answer.text", {"text": "多行\n文字"}), END)
        last = await rest(stream)
    assert [(each.id, each.event) for each in last] == [("0.7", "answer.text"), ("0.8", "run.succeeded")]
    assert last[0].data == {"text": "多行\n文字"}


async def test_a_stream_is_resumed_exactly_from_another_process(base: str, member: Person, database: Database) -> None:
    run = await ask(member)
    await tell(database, "acme", run, *TOKENS)
    async with open_stream(base, member.key, run) as stream:
        first = await take(stream, 3)
    async with serve(stream_role(database)) as elsewhere:
        async with open_stream(elsewhere, member.key, run, last_event_id=first[-1].id) as stream:
            missed = await take(stream, 2)
            await tell(database, "acme", run, *TOKENS, END)
            after = await rest(stream)
        async with open_stream(elsewhere, member.key, run, after=first[-1].id) as stream:
            again = await rest(stream)
    assert [each.id for each in first + missed + after] == [f"0.{seq}" for seq in range(1, 12)]
    assert again == missed + after


async def test_many_watchers_of_one_run_all_get_every_event_once(base: str, member: Person, database: Database) -> None:
    run = await ask(member)

    async def watch() -> list[str]:
        async with open_stream(base, member.key, run) as stream:
            return [each.id for each in await rest(stream)]

    watchers = [asyncio.create_task(watch()) for _ in range(20)]
    for _ in range(10):
        await tell(database, "acme", run, *TOKENS)
    await tell(database, "acme", run, END)
    assert await asyncio.gather(*watchers) == [[f"0.{seq}" for seq in range(1, 52)]] * 20


async def test_a_resume_past_the_end_closes_at_once_and_an_id_from_nowhere_is_refused(
    base: str, member: Person, database: Database
) -> None:
    run = await ask(member)
    await tell(database, "acme", run, *TOKENS, END)
    async with asyncio.timeout(5):
        for last in ("0.6", "0.999999", "7.6"):
            async with open_stream(base, member.key, run, last_event_id=last) as stream:
                assert await rest(stream) == []
    for bad in ("x", "0.", "-1", "0.1.2", "1e3", "9" * 40):
        reply = await member.http.get(
            f"/v1/runs/{run}/events", params={"format": "json"}, headers={"Last-Event-ID": bad}
        )
        assert (reply.status_code, reply.json()["type"].endswith("bad_event_id")) == (400, True), bad


async def test_the_list_gives_what_the_stream_gives_lists_of_sources_and_citations_among_it(
    base: str, member: Person, database: Database
) -> None:
    run = await ask(member)
    told: list[tuple[str, Any]] = [("sources", [{"n": 1}]), ("token", {"text": "Yes"}), ("citations", []), END]
    await tell(database, "acme", run, *told)
    async with open_stream(base, member.key, run) as stream:
        streamed = [(each.id, each.event, each.data) for each in await rest(stream)]
    reply = await member.http.get(f"/v1/runs/{run}/events", params={"format": "json"})
    assert reply.status_code == 200, reply.text
    assert [(each["id"], each["type"], each["data"]) for each in reply.json()["items"]] == streamed
    assert ("0.1", "sources", [{"n": 1}]) in streamed


async def test_a_run_is_read_by_its_user_and_an_ingest_also_by_the_managers_of_its_space(
    app: FastAPI, admin: Person, member: Person, database: Database
) -> None:
    run = await ask(member)
    assert (await admin.http.get(f"/v1/runs/{run}")).status_code == 404
    assert (await admin.http.get(f"/v1/runs/{run}/events")).status_code == 404
    space = await space_of(admin)
    await admin.http.put(f"/v1/spaces/{space}/grants/user:{member.user}", json={"role": "contributor"})
    ingest = (await upload(member, space))["run_id"]
    other = await person(database, app)
    await admin.http.put(f"/v1/spaces/{space}/grants/user:{other.user}", json={"role": "contributor"})
    seen = [(await who.http.get(f"/v1/runs/{ingest}")).status_code for who in (member, admin, other)]
    assert seen == [200, 200, 404]


async def _answer_from_a_document(admin: Person, member: Person, database: Database) -> tuple[str, str, str]:
    """A run of the member's whose text came from a document of the admin's: (space, document, run)."""
    space = await space_of(admin)
    document = (await upload(admin, space))["document_id"]
    await admin.http.put(f"/v1/spaces/{space}/grants/tenant", json={"role": "viewer"})
    run = await ask(member)
    async with database.begin("acme") as transaction:
        await answers_store.record_sources(transaction, [run_stream(run)], [(document, 1)])
    await tell(database, "acme", run, ("sources", {"items": [{"title": "Leave"}]}), *TOKENS)
    return space, document, run


async def test_text_is_withheld_from_open_and_resumed_streams_once_a_source_is_forbidden(
    base: str, admin: Person, member: Person, database: Database
) -> None:
    space, _, run = await _answer_from_a_document(admin, member, database)
    async with open_stream(base, member.key, run) as stream:
        assert [each.data.get("withheld") for each in await take(stream, 6)] == [None] * 6
        taken = await admin.http.delete(f"/v1/spaces/{space}/grants/tenant")
        assert taken.status_code == 204
        await tell(database, "acme", run, ("answer.text", {"text": "30 days"}), ("usage", {"input_tokens": 1}))
        text, usage = await take(stream, 2)
        assert (text.event, text.data) == ("answer.text", {"withheld": True})
        assert usage.data == {"input_tokens": 1}
        await tell(database, "acme", run, END)
        assert [each.event for each in await rest(stream)] == ["run.succeeded"]
    async with open_stream(base, member.key, run) as stream:
        again = await rest(stream)
    listed = (await member.http.get(f"/v1/runs/{run}/events", params={"format": "json"})).json()["items"]
    assert [each.id for each in again] == [each["id"] for each in listed] == [f"0.{seq}" for seq in range(1, 10)]
    for events in ([each.data for each in again], [each["data"] for each in listed]):
        assert events[:7] == [{"withheld": True}] * 7


async def test_text_of_a_removed_document_is_withheld_from_everyone(
    base: str, admin: Person, member: Person, database: Database
) -> None:
    _, document, run = await _answer_from_a_document(admin, member, database)
    assert (await admin.http.delete(f"/v1/documents/{document}")).status_code == 202
    await tell(database, "acme", run, END)
    async with open_stream(base, member.key, run) as stream:
        assert [each.data for each in (await rest(stream))[:6]] == [{"withheld": True}] * 6
    answer = (await member.http.get(f"/v1/runs/{run}")).json()
    assert answer["id"] == run


@pytest.mark.parametrize("how", ["key", "user"])
async def test_an_open_stream_ends_when_its_key_is_revoked_or_its_user_disabled(
    how: str, base: str, admin: Person, member: Person, database: Database
) -> None:
    run = await ask(member)
    await tell(database, "acme", run, *TOKENS)
    async with asyncio.timeout(8), open_stream(base, member.key, run) as stream:
        await take(stream, 5)
        if how == "key":
            await admin.http.delete(f"/v1/api-keys/{member.key_id}")
        else:
            await admin.http.put(f"/v1/users/{member.user}", json={"disabled": True})
        await tell(database, "acme", run, ("token", {"text": "secret"}))
        assert await rest(stream) == []


async def test_why_an_ingest_failed_is_not_told_to_who_may_not_read_the_document(
    base: str, admin: Person, member: Person, database: Database
) -> None:
    space = await space_of(admin)
    await admin.http.put(f"/v1/spaces/{space}/grants/user:{member.user}", json={"role": "contributor"})
    receipt = await upload(member, space)
    error = {"code": "corrupt", "detail": "Sheet 'Salaries' is cut off", "retryable": False}
    await tell(database, "acme", receipt["run_id"], ("run.failed", error))
    async with database.begin("acme") as transaction:
        await runs_store.end(transaction, receipt["run_id"], RunEnd(state="failed", error=error))
    path = f"/v1/runs/{receipt['run_id']}"
    assert (await member.http.get(path)).json()["error"]["detail"] == error["detail"]
    await admin.http.delete(f"/v1/spaces/{space}/grants/user:{member.user}")
    assert "Salaries" not in (await member.http.get(path)).text
    assert "Salaries" not in (await member.http.get(f"{path}/events", params={"format": "json"})).text
    assert (await member.http.get(path)).json()["error"]["code"] == "corrupt"


async def test_the_answer_call_streams_its_own_run_when_asked_to(base: str, member: Person, database: Database) -> None:
    headers = {"Authorization": f"Bearer {member.key}", "Accept": "text/event-stream"}
    async with (
        httpx.AsyncClient(base_url=base, headers=headers, timeout=30) as http,
        http.stream("POST", "/v1/answers", json={"question": "Why?"}) as reply,
    ):
        assert reply.status_code == 200
        run = reply.headers["x-run-id"]
        await tell(database, "acme", run, *TOKENS, END)
        assert [each.event for each in await rest(received(reply))] == ["token"] * 5 + ["run.succeeded"]
    view = (await member.http.get(f"/v1/answers/{reply.headers['x-answer-id']}")).json()
    assert view["run_id"] == run


async def test_a_key_has_a_bounded_number_of_streams(database: Database, member: Person, tmp_path: Path) -> None:
    container = serving.serving(database, tmp_path / "b", {"streams_per_key": 2})
    run = await ask(member)
    async with serve(container) as url:
        headers = {"Authorization": f"Bearer {member.key}"}
        async with (
            open_stream(url, member.key, run),
            open_stream(url, member.key, run),
            httpx.AsyncClient(base_url=url, headers=headers) as http,
        ):
            refused = await http.get(f"/v1/runs/{run}/events")
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "10")
        await tell(database, "acme", run, END)
        async with open_stream(url, member.key, run) as stream:
            assert [each.event for each in await rest(stream)] == ["run.succeeded"]


async def test_a_reader_that_does_not_read_is_let_go(database: Database, member: Person, tmp_path: Path) -> None:
    container = serving.serving(database, tmp_path / "b", {"slow_client_s": 0.5})
    run = await ask(member)
    async with serve(container) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=1_024)
        head = f"GET /v1/runs/{run}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {member.key}\r\n\r\n"
        writer.write(head.encode())
        await reader.readline()
        async with asyncio.timeout(60):
            while container.hub.watchers == 0:
                await asyncio.sleep(0.01)
            while container.hub.watchers == 1:
                await tell(database, "acme", run, *[("token", {"text": "x" * 200_000})] * 10)
        writer.close()
