"""Who gets 401, 403 and 404; and that what is taken away is away with the next request."""

from __future__ import annotations

from fastapi import FastAPI

from services.stores.database import Database
from tests.integration.api.serving import Person, all_items, client, person, space_of, upload

READS = [
    "/v1/documents/{document}", "/v1/documents/{document}/text", "/v1/documents/{document}/file",
    "/v1/documents/{document}/chunks", "/v1/documents/{document}/versions", "/v1/documents/{document}/history",
    "/v1/runs/{run}", "/v1/runs/{run}/events?format=json", "/v1/spaces/{space}", "/v1/spaces/{space}/grants",
    "/v1/documents?space={space}",
]  # fmt: skip
CHANGES = [
    ("POST", "/v1/documents/{document}/retry", None),
    ("POST", "/v1/documents/{document}/cancel", None),
    ("DELETE", "/v1/documents/{document}", None),
    ("PUT", "/v1/documents/{document}/tags", {"tags": ["x"]}),
    ("PUT", "/v1/documents/{document}/readers", {"readers": ["space"]}),
    ("POST", "/v1/runs/{run}/cancel", None),
    ("DELETE", "/v1/spaces/{space}", None),
    ("PUT", "/v1/spaces/{space}/grants/tenant", {"role": "viewer"}),
    ("DELETE", "/v1/spaces/{space}/grants/tenant", None),
    ("POST", "/v1/documents/text", {"space": "{space}", "title": "T", "text": "t"}),
    ("POST", "/v1/documents/url", {"space": "{space}", "url": "https://example.org"}),
]  # fmt: skip


async def test_every_id_of_another_tenant_is_unknown(admin: Person, stranger: Person) -> None:
    space = await space_of(admin)
    receipt = await upload(admin, space)
    ids = {"document": receipt["document_id"], "run": receipt["run_id"], "space": space}
    for path in READS:
        reply = await stranger.http.get(path.format(**ids))
        assert reply.status_code == 404, path
    for method, path, body in CHANGES:
        sent = {name: value.format(**ids) if isinstance(value, str) else value for name, value in (body or {}).items()}
        reply = await stranger.http.request(method, path.format(**ids), json=sent or None)
        assert reply.status_code == 404, path
    for path in (f"/v1/users/{admin.user}", f"/v1/groups/x/members/{admin.user}"):
        assert (await stranger.http.put(path, json={} if "users" in path else None)).status_code == 404
    assert (await stranger.http.delete(f"/v1/api-keys/{admin.key_id}")).status_code == 404
    assert (await stranger.http.post("/v1/api-keys", json={"user_id": admin.user})).status_code == 404
    assert admin.user not in [each["id"] for each in await all_items(stranger, "/v1/users")]
    assert (await admin.http.get(f"/v1/documents/{receipt['document_id']}")).status_code == 200


async def test_a_hidden_thing_and_an_unknown_one_look_the_same(admin: Person, member: Person) -> None:
    space = await space_of(admin)
    hidden = await member.http.get(f"/v1/spaces/{space}")
    unknown = await member.http.get("/v1/spaces/nowhere")
    strip = {"request_id", "detail"}
    assert hidden.status_code == unknown.status_code == 404
    assert {k: v for k, v in hidden.json().items() if k not in strip} == {
        k: v for k, v in unknown.json().items() if k not in strip
    }
    assert hidden.json()["detail"].replace(space, "X") == unknown.json()["detail"].replace("nowhere", "X")


async def test_an_admin_does_not_read_documents_by_being_one(admin: Person, member: Person) -> None:
    space = await space_of(member)
    receipt = await upload(member, space)
    assert (await admin.http.get(f"/v1/documents/{receipt['document_id']}")).status_code == 404
    assert (await admin.http.get("/v1/documents", params={"space": space})).status_code == 404
    assert await all_items(admin, "/v1/documents") == []
    assert (await admin.http.get(f"/v1/spaces/{space}/grants")).status_code == 200


async def test_a_viewer_reads_and_is_told_what_they_may_not_do(admin: Person, member: Person) -> None:
    space = await space_of(admin)
    receipt = await upload(admin, space)
    await admin.http.put(f"/v1/spaces/{space}/grants/user:{member.user}", json={"role": "viewer"})
    path = f"/v1/documents/{receipt['document_id']}"
    assert (await member.http.get(path)).status_code == 200
    refused = await member.http.post("/v1/documents/text", json={"space": space, "title": "T", "text": "t"})
    assert (refused.status_code, refused.json()["needs"]) == (403, "contributor")
    assert (await member.http.delete(path)).status_code == 403
    assert (await member.http.get(f"/v1/spaces/{space}/grants")).status_code == 403


async def test_readers_narrow_a_document_to_those_named(admin: Person, member: Person) -> None:
    space = await space_of(admin)
    receipt = await upload(admin, space)
    await admin.http.put(f"/v1/spaces/{space}/grants/tenant", json={"role": "viewer"})
    path = f"/v1/documents/{receipt['document_id']}"
    assert (await member.http.get(path)).status_code == 200
    assert (await admin.http.put(f"{path}/readers", json={"readers": [f"user:{admin.user}"]})).status_code == 200
    assert (await member.http.get(path)).status_code == 404
    assert await all_items(member, "/v1/documents") == []
    assert (await admin.http.put(f"{path}/readers", json={"readers": [f"user:{member.user}"]})).status_code == 200
    assert (await member.http.get(path)).status_code == 200


async def test_scopes_bound_what_a_key_does_whatever_its_user_may(
    admin: Person, app: FastAPI, database: Database
) -> None:
    read = await person(database, app, role="admin", scopes=["read"])
    write = await person(database, app, role="admin", scopes=["write"])
    only_admin = await person(database, app, role="admin", scopes=["admin"])
    tried = {
        name: [
            await who.http.get("/v1/documents"),
            await who.http.post("/v1/spaces", json={"name": name}),
            await who.http.get("/v1/users"),
        ]
        for name, who in (("read", read), ("write", write), ("admin", only_admin))
    }
    assert {name: [reply.status_code for reply in replies] for name, replies in tried.items()} == {
        "read": [200, 403, 403],
        "write": [403, 201, 403],
        "admin": [403, 201, 200],
    }


async def test_a_revoked_key_and_a_disabled_user_are_out_with_the_next_request(
    admin: Person, app: FastAPI, database: Database
) -> None:
    one, two = await person(database, app), await person(database, app)
    assert [(await each.http.get("/v1/me")).status_code for each in (one, two)] == [200, 200]
    assert (await admin.http.delete(f"/v1/api-keys/{one.key_id}")).status_code == 204
    assert (await admin.http.put(f"/v1/users/{two.user}", json={"disabled": True})).status_code == 200
    assert [(await each.http.get("/v1/me")).status_code for each in (one, two)] == [401, 401]
    assert (await admin.http.put(f"/v1/users/{two.user}", json={"disabled": False})).status_code == 200
    assert [(await each.http.get("/v1/me")).status_code for each in (one, two)] == [401, 200]


async def test_no_key_a_wrong_key_and_another_scheme_are_the_same_401(app: FastAPI) -> None:
    headers: list[dict[str, str]] = [
        {}, {"Authorization": "Bearer "}, {"Authorization": "Bearer prd_wrong"}, {"Authorization": "Basic eDp5"},
        {"Authorization": "Bearer " + "x" * 5_000},
    ]  # fmt: skip
    for each in headers:
        reply = await client(app, None).get("/v1/documents", headers=each)
        assert reply.status_code == 401
        assert reply.headers["www-authenticate"].startswith("Bearer")
        assert reply.headers["content-type"] == "application/problem+json"


async def test_nobody_unknown_has_their_body_read(app: FastAPI) -> None:
    reply = await client(app, "prd_wrong").post(
        "/v1/spaces", content=b"{", headers={"Content-Type": "application/json"}
    )
    assert reply.status_code == 401
