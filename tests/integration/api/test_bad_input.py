"""Whatever is sent, the reply is a problem a person can act on, and nothing is left behind."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from services.container import Serving
from services.stores.database import Database
from tests.integration.api import serving
from tests.integration.api.served import serve
from tests.integration.api.serving import Person, all_items, client, person, space_of

JSON = {"Content-Type": "application/json"}
DEEP = b'{"name": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
CASES: list[tuple[str, str, dict[str, Any], int, str]] = [
    ("POST", "/v1/spaces", {"content": b"{", "headers": JSON}, 400, "malformed"),
    ("POST", "/v1/spaces", {"content": b"\xff\xfe{", "headers": JSON}, 400, "malformed"),
    ("POST", "/v1/spaces", {"content": DEEP, "headers": JSON}, 400, "malformed"),
    ("POST", "/v1/spaces", {"content": b'{"name": NaN}', "headers": JSON}, 400, "malformed"),
    ("POST", "/v1/spaces", {"content": b'{"name": ' + b"9" * 10_000 + b"}", "headers": JSON}, 400, "malformed"),
    ("POST", "/v1/spaces", {"json": {"name": "a", "colour": "red"}}, 422, "invalid_request"),
    ("POST", "/v1/spaces", {"json": {"name": "   "}}, 422, "invalid_request"),
    ("POST", "/v1/spaces", {"json": ["a"]}, 422, "invalid_request"),
    ("POST", "/v1/spaces", {"content": b"name=a"}, 422, "invalid_request"),
    ("POST", "/v1/spaces", {"content": b""}, 422, "invalid_request"),
    ("POST", "/v1/users", {"json": {"email": "nowhere", "name": "A"}}, 422, "invalid_request"),
    ("POST", "/v1/users", {"json": {"email": "a@b", "name": "A", "role": "root"}}, 422, "invalid_request"),
    ("POST", "/v1/api-keys", {"json": {"user_id": "nobody"}}, 404, "not_found"),
    ("POST", "/v1/api-keys", {"json": {"user_id": "x", "expires_at": "9999-12-31T23:59:59-12:00"}}, 422, "invalid_request"),
    ("GET", "/v1/users?limit=101", {}, 422, "invalid_request"),
    ("GET", "/v1/users?limit=0", {}, 422, "invalid_request"),
    ("GET", "/v1/users?cursor=%21%21", {}, 400, "bad_cursor"),
    ("GET", "/v1/users?cursor=W10", {}, 400, "bad_cursor"),
    ("GET", "/v1/nothing", {}, 404, "not_found"),
    ("GET", "/v1/users/", {}, 404, "not_found"),
    ("PATCH", "/v1/users", {}, 405, "method_not_allowed"),
    ("GET", "/v1/documents/%00", {}, 400, "malformed"),
    ("GET", "/v1/documents?tag=%00", {}, 400, "malformed"),
    ("GET", "/v1/documents?state=lost", {}, 422, "invalid_request"),
    ("GET", "/v1/documents?space=nowhere", {}, 404, "not_found"),
    ("GET", "/v1/documents/x/text?version=99999999999", {}, 422, "invalid_request"),
    ("GET", "/v1/runs/none/events", {}, 404, "not_found"),
    ("GET", "/v1/answers/none", {}, 404, "not_found"),
    ("POST", "/v1/search", {"json": {"query": ""}}, 422, "invalid_request"),
    ("POST", "/v1/search", {"json": {"query": "a", "limit": 101}}, 422, "invalid_request"),
    ("POST", "/v1/search", {"json": {"query": "a", "filters": {"colour": "red"}}}, 422, "invalid_request"),
    ("POST", "/v1/answers", {"json": {"question": "  "}}, 422, "invalid_request"),
    ("POST", "/v1/answers", {"json": {"question": "a", "space": "nowhere"}}, 404, "not_found"),
    ("POST", "/v1/documents", {"json": {"space": "handbook"}}, 415, "unsupported_media_type"),
    ("POST", "/v1/documents", {"data": {"space": "handbook"}, "files": {}}, 415, "unsupported_media_type"),
    ("POST", "/v1/documents", {"files": {"file": ("a", b"a")}}, 422, "invalid_request"),
    ("POST", "/v1/documents", {"data": {"space": "nowhere"}, "files": {"file": ("a", b"a")}}, 404, "not_found"),
    ("POST", "/v1/documents", {"data": {"space": "handbook"}, "files": {"fyle": ("a", b"a")}}, 422, "invalid_request"),
    ("POST", "/v1/documents", {"data": {"space": "handbook", "readers": "all"}, "files": {"file": ("a", b"a")}}, 422,
     "invalid_request"),
    ("POST", "/v1/documents", {"data": {"space": "handbook"}, "files": {"file": ("a", b"")}}, 422, "empty"),
    ("POST", "/v1/documents/text", {"json": {"space": "handbook", "title": "T", "text": ""}}, 422, "empty"),
    ("POST", "/v1/documents/url", {"json": {"space": "handbook", "url": "file:///etc/passwd"}}, 422, "invalid_request"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "request_", "status", "type"), CASES)
async def test_bad_input_is_a_problem(
    method: str, path: str, request_: dict[str, Any], status: int, type: str, admin: Person
) -> None:
    await space_of(admin)
    reply = await admin.http.request(method, path, **request_)
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    problem = reply.json()
    assert problem["type"] == f"urn:perdure:problem:{type}"
    assert problem["status"] == status
    assert problem["title"]
    assert problem["detail"]
    assert problem["request_id"] == reply.headers["x-request-id"]
    assert await all_items(admin, "/v1/documents") == []


async def test_a_cursor_of_another_list_is_refused(admin: Person) -> None:
    other = base64.urlsafe_b64encode(json.dumps(["/v1/groups", "x"]).encode()).decode()
    for cursor in (other, base64.urlsafe_b64encode(json.dumps(["/v1/users", "a\x00"]).encode()).decode()):
        assert (await admin.http.get("/v1/users", params={"cursor": cursor})).json()["type"].endswith("bad_cursor")


async def test_half_a_surrogate_pair_and_nul_never_reach_a_row(admin: Person) -> None:
    body = b'{"name": "a\\ud800b\\u0000c"}'
    reply = await admin.http.post("/v1/spaces", content=body, headers=JSON)
    assert (reply.status_code, reply.json()["name"]) == (201, "a\ufffdbc")


async def test_bodies_over_their_bound_are_refused_while_they_arrive(database: Database, tmp_path: Path) -> None:
    container = serving.serving(database, tmp_path / "blobs", {"request_bytes": 1_000, "upload_bytes": 2_000})
    async with serving.running(container) as app:
        admin = await person(database, app, role="admin")
        sent = 0

        async def endless(head: bytes = b"") -> AsyncIterator[bytes]:
            nonlocal sent
            yield head
            while True:
                sent += 500
                yield b" " * 500

        announced = await admin.http.post("/v1/spaces", content=b" " * 1_001, headers=JSON)
        streamed = await admin.http.post("/v1/spaces", content=endless(), headers=JSON)
        for reply in (announced, streamed):
            assert (reply.status_code, reply.json()["setting"]) == (413, "PERDURE_LIMITS__REQUEST_BYTES")
        assert sent <= 2_000
        space = await space_of(admin)
        files = [("file", ("big.txt", b"x" * 2_001)), ("file", ("small.txt", b"x" * 2_000))]
        both = await admin.http.post("/v1/documents", data={"space": space}, files=files)
        assert [each["outcome"] for each in both.json()["documents"]] == ["rejected", "created"]
        assert both.json()["documents"][0]["error"]["code"] == "too_large"
        alone = await admin.http.post("/v1/documents", data={"space": space}, files=files[:1])
        assert (alone.status_code, alone.json()["documents"][0]["error"]["code"]) == (422, "too_large")
        sent = 0
        head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="v.txt"\r\n\r\n'
        form = {"Content-Type": "multipart/form-data; boundary=b"}
        vast = await admin.http.post("/v1/documents", content=endless(head), headers=form)
        assert vast.status_code == 413
        assert sent <= 6_000
        kept = [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]
        assert [path.stat().st_size for path in kept] == [2_000]


async def test_a_body_that_dribbles_is_given_up(database: Database, tmp_path: Path) -> None:
    container = serving.serving(database, tmp_path / "blobs", {"slow_client_s": 0.3})
    async with serve(container) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        admin = await person(database, FastAPI(), role="admin")
        reader, writer = await asyncio.open_connection(host, int(port))
        head = f"POST /v1/spaces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {admin.key}\r\n"
        writer.write(f"{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{".encode())
        status = await asyncio.wait_for(reader.readline(), 20)
        assert b" 408 " in status
        writer.close()


async def test_too_many_requests_are_told_when_to_come_back(database: Database, tmp_path: Path) -> None:
    container = serving.serving(database, tmp_path / "blobs", {"requests_per_minute": 3, "wrong_keys_per_minute": 2})
    async with serving.running(container) as app:
        one, two = await person(database, app), await person(database, app)
        replies = [await one.http.get("/v1/me") for _ in range(4)]
        assert [reply.status_code for reply in replies] == [200, 200, 200, 429]
        assert 1 <= int(replies[-1].headers["retry-after"]) <= 20
        assert (await two.http.get("/v1/me")).status_code == 200
        guesses = [await client(app, f"prd_{number}").get("/v1/me") for number in range(4)]
        assert [reply.status_code for reply in guesses] == [401, 401, 429, 429]
        assert (await two.http.get("/v1/me")).status_code == 200


async def test_an_unforeseen_error_says_nothing_of_the_inside(admin: Person, container: Serving) -> None:
    async def break_down(*_: object) -> None:
        raise RuntimeError("password=hunter2")

    object.__setattr__(container, "search", type("Broken", (), {"search": break_down})())
    reply = await admin.http.post("/v1/search", json={"query": "a"})
    assert reply.status_code == 500
    assert "hunter2" not in reply.text
    assert reply.json()["request_id"]
