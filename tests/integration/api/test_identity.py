"""Users, groups, spaces, grants and keys over HTTP, each with its event."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest
from fastapi import FastAPI

from services.stores import event_log
from services.stores.database import Database
from tests.integration.api.serving import Person, all_items, client, person, space_of


async def events_of(database: Database, stream: str, tenant: str = "acme") -> list[tuple[str, dict[str, object]]]:
    async with database.begin(tenant) as transaction:
        return [(event.type, event.data) for event in await event_log.of_stream(transaction, stream)]


async def test_a_user_is_made_listed_changed_and_told_of_without_name_or_address(
    admin: Person, database: Database
) -> None:
    made = await admin.http.post("/v1/users", json={"email": "Ann@example.org", "name": "Ann", "role": "member"})
    assert made.status_code == 201
    user = made.json()
    assert user == {"id": user["id"], "email": "Ann@example.org", "name": "Ann", "role": "member", "disabled": False}
    changed = await admin.http.put(f"/v1/users/{user['id']}", json={"role": "admin", "disabled": True})
    assert changed.json() == {**user, "role": "admin", "disabled": True}
    assert user["id"] in [each["id"] for each in await all_items(admin, "/v1/users", limit=1)]
    events = await events_of(database, f"user:{user['id']}")
    assert events == [
        ("user.created", {"role": "member", "disabled": False}),
        ("user.changed", {"role": "admin", "disabled": True}),
    ]
    assert "Ann" not in json.dumps(events)


async def test_one_address_has_one_user_however_it_is_written(admin: Person) -> None:
    first = await admin.http.post("/v1/users", json={"email": "ann@example.org", "name": "Ann"})
    again = await admin.http.post("/v1/users", json={"email": "ANN@example.org", "name": "Other"})
    assert (first.status_code, again.status_code) == (201, 409)
    assert again.json()["type"].endswith("email_taken")


async def test_a_tenant_keeps_an_active_admin(admin: Person) -> None:
    for change in ({"disabled": True}, {"role": "member"}):
        refused = await admin.http.put(f"/v1/users/{admin.user}", json=change)
        assert refused.status_code == 409
        assert refused.json()["type"].endswith("last_admin")
    assert (await admin.http.get("/v1/me")).json()["role"] == "admin"


async def test_two_admins_who_demote_each_other_at_once_leave_one(
    admin: Person, app: FastAPI, database: Database
) -> None:
    other = await person(database, app, role="admin")
    replies = await asyncio.gather(
        admin.http.put(f"/v1/users/{other.user}", json={"role": "member"}),
        other.http.put(f"/v1/users/{admin.user}", json={"role": "member"}),
    )
    assert sorted(reply.status_code for reply in replies) in ([200, 403], [200, 409])


async def test_a_group_and_its_grants_end_together(admin: Person, member: Person, database: Database) -> None:
    group = (await admin.http.post("/v1/groups", json={"name": "Finance"})).json()
    space = await space_of(admin)
    path = f"/v1/groups/{group['id']}/members/{member.user}"
    assert (
        await admin.http.put(f"/v1/spaces/{space}/grants/group:{group['id']}", json={"role": "viewer"})
    ).status_code == 204
    assert (await member.http.get(f"/v1/spaces/{space}")).status_code == 404
    assert (await admin.http.put(path)).status_code == 204
    assert (await admin.http.put(path)).status_code == 204
    assert (await member.http.get(f"/v1/spaces/{space}")).status_code == 200
    assert (await member.http.get("/v1/me")).json()["groups"] == [group["id"]]
    assert (await admin.http.delete(path)).status_code == 204
    assert (await member.http.get(f"/v1/spaces/{space}")).status_code == 404
    await admin.http.put(path)
    assert (await admin.http.delete(f"/v1/groups/{group['id']}")).status_code == 204
    assert (await member.http.get(f"/v1/spaces/{space}")).status_code == 404
    assert [type for type, _ in await events_of(database, f"group:{group['id']}")] == [
        "group.created", "group.member_added", "group.member_removed", "group.member_added", "group.removed",
    ]  # fmt: skip
    assert [type for type, _ in await events_of(database, f"space:{space}")][-1] == "grant.taken"
    assert await all_items(admin, "/v1/groups") == []


async def test_whoever_makes_a_space_manages_it_and_names_work_like_ids(member: Person, database: Database) -> None:
    space = await space_of(member, "Reise & Spesen")
    by_name = await member.http.get("/v1/spaces/Reise%20%26%20Spesen")
    assert by_name.json()["id"] == space
    assert (await all_items(member, f"/v1/spaces/{space}/grants")) == [
        {"principal": f"user:{member.user}", "role": "manager"}
    ]
    assert [type for type, _ in await events_of(database, f"space:{space}")] == ["space.created", "grant.given"]
    twice = await member.http.post("/v1/spaces", json={"name": "Reise & Spesen"})
    assert (twice.status_code, twice.json()["type"].endswith("name_taken")) == (409, True)


@pytest.mark.parametrize("principal", ["user", "tenant"])
async def test_a_grant_is_given_changed_and_taken(principal: str, admin: Person, member: Person) -> None:
    space = await space_of(admin)
    named = f"user:{member.user}" if principal == "user" else "tenant"
    path = f"/v1/spaces/{space}/grants/{named}"
    assert (await admin.http.put(path, json={"role": "viewer"})).status_code == 204
    refused = await member.http.put(path, json={"role": "manager"})
    assert refused.status_code == 403
    assert (await admin.http.put(path, json={"role": "manager"})).status_code == 204
    assert (await member.http.get(f"/v1/spaces/{space}/grants")).status_code == 200
    assert (await admin.http.delete(path)).status_code == 204
    assert (await member.http.get(f"/v1/spaces/{space}/grants")).status_code == 404


async def test_a_principal_that_is_none_is_refused(admin: Person) -> None:
    space = await space_of(admin)
    for principal, status in (("everyone", 422), ("user:", 422), ("user:nobody", 404), ("group:none", 404)):
        reply = await admin.http.put(f"/v1/spaces/{space}/grants/{principal}", json={"role": "viewer"})
        assert reply.status_code == status, principal


async def test_a_key_is_shown_once_and_has_the_scopes_its_role_allows(
    admin: Person, member: Person, app: FastAPI, database: Database
) -> None:
    made = await admin.http.post("/v1/api-keys", json={"user_id": member.user, "scopes": ["admin", "read"]})
    assert made.status_code == 201
    key = made.json()["key"]
    assert key.startswith("prd_")
    assert (await client(app, key).get("/v1/me")).json()["scopes"] == ["read"]
    listed = await all_items(admin, "/v1/api-keys")
    assert key not in json.dumps(listed)
    assert made.json()["id"] in [each["id"] for each in listed]
    events = await events_of(database, f"key:{made.json()['id']}")
    assert [type for type, _ in events] == ["key.created"]
    assert key not in json.dumps(events)


async def test_a_key_ends_when_it_expires(admin: Person, app: FastAPI) -> None:
    past = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    assert (await admin.http.post("/v1/api-keys", json={"user_id": admin.user, "expires_at": past})).status_code == 422
    soon = (datetime.now(UTC) + timedelta(seconds=0.6)).isoformat()
    made = await admin.http.post("/v1/api-keys", json={"user_id": admin.user, "expires_at": soon})
    brief = client(app, made.json()["key"])
    async with asyncio.timeout(10):
        while (await brief.get("/v1/me")).status_code == 200:
            await asyncio.sleep(0.05)
    assert (await brief.get("/v1/me")).status_code == 401


async def test_me_says_who_what_and_where(admin: Person) -> None:
    assert (await admin.http.get("/v1/me")).json() == {
        "user_id": admin.user,
        "tenant_id": "acme",
        "role": "admin",
        "groups": [],
        "scopes": ["admin", "read", "write"],
    }
