"""One effect and one reply per Idempotency-Key, whatever happens at the same time or in between."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import func, select, update

from schemas.documents import Receipts, Upload
from schemas.errors import Conflict
from schemas.identity import GroupDraft
from services.access.groups import Groups
from services.container import Serving
from services.stores import idempotency_store
from services.stores.database import Database
from services.stores.idempotency_store import Busy, Replay, Reservation
from services.stores.tables.facts import idempotency_keys
from services.stores.tables.identity import api_keys, groups, spaces
from services.stores.tables.runs import runs
from tests.integration.api.serving import Person, all_items, space_of


def once(key: str) -> dict[str, str]:
    return {"Idempotency-Key": key}


async def test_twenty_posts_at_once_have_one_effect_and_one_reply(admin: Person, database: Database) -> None:
    body = {"name": "Finance"}
    replies = await asyncio.gather(*(admin.http.post("/v1/groups", json=body, headers=once("k1")) for _ in range(20)))
    assert {reply.status_code for reply in replies} == {201}
    assert len({reply.json()["id"] for reply in replies}) == 1
    assert sum("idempotency-replayed" in reply.headers for reply in replies) == 19
    async with database.begin("acme") as transaction:
        assert await transaction.scalar(select(func.count()).select_from(groups)) == 1


async def test_twenty_questions_at_once_start_one_run(member: Person, database: Database) -> None:
    body = {"question": "Why?"}
    replies = await asyncio.gather(*(member.http.post("/v1/answers", json=body, headers=once("q")) for _ in range(20)))
    assert {reply.status_code for reply in replies} == {202}
    assert len({reply.json()["run_id"] for reply in replies}) == 1
    async with database.begin("acme") as transaction:
        assert await transaction.scalar(select(func.count()).select_from(runs)) == 1


async def test_a_key_belongs_to_its_request_and_to_its_caller(admin: Person, member: Person) -> None:
    assert (await admin.http.post("/v1/spaces", json={"name": "one"}, headers=once("k"))).status_code == 201
    other_body = await admin.http.post("/v1/spaces", json={"name": "two"}, headers=once("k"))
    other_place = await admin.http.post("/v1/groups", json={"name": "one"}, headers=once("k"))
    assert [reply.status_code for reply in (other_body, other_place)] == [409, 409]
    assert other_body.json()["type"].endswith("idempotency_key_reused")
    assert (await member.http.post("/v1/spaces", json={"name": "three"}, headers=once("k"))).status_code == 201


async def test_a_refused_request_leaves_its_key_free(admin: Person) -> None:
    await space_of(admin, "taken")
    refused = await admin.http.post("/v1/spaces", json={"name": "taken"}, headers=once("k"))
    assert refused.status_code == 409
    assert (await admin.http.post("/v1/spaces", json={"name": "free"}, headers=once("k"))).status_code == 201


async def test_a_replayed_key_creation_does_not_show_the_secret(admin: Person, database: Database) -> None:
    body = {"user_id": admin.user}
    first = await admin.http.post("/v1/api-keys", json=body, headers=once("k"))
    again = await admin.http.post("/v1/api-keys", json=body, headers=once("k"))
    assert (again.status_code, again.json()) == (201, {"id": first.json()["id"]})
    async with database.begin("acme") as transaction:
        stored = await transaction.all(select(idempotency_keys))
        assert first.json()["key"] not in str([dict(row) for row in stored])
        made = select(func.count()).select_from(api_keys).where(api_keys.c.id == first.json()["id"])
        assert await transaction.scalar(made) == 1


async def test_the_same_upload_is_the_same_request_whatever_its_boundary(admin: Person) -> None:
    space = await space_of(admin)
    replies = [
        await admin.http.post(
            "/v1/documents",
            data={"space": space},
            files=[("file", ("leave.md", b"# Leave", "text/markdown"))],
            headers={**once("k"), "Content-Type": f"multipart/form-data; boundary={boundary}"},
        )
        for boundary in ("first", "second")
    ]
    assert [reply.status_code for reply in replies] == [202, 202]
    assert replies[0].json() == replies[1].json()
    assert replies[1].json()["documents"][0]["outcome"] == "created"
    assert len(await all_items(admin, "/v1/documents")) == 1


@pytest.mark.parametrize("key", ["", "ключ".encode(), "x" * 256, "a\tb"])
async def test_a_key_that_cannot_be_one_is_refused(key: str | bytes, admin: Person) -> None:
    value = key if isinstance(key, bytes) else key.encode()
    reply = await admin.http.post("/v1/spaces", json={"name": "a"}, headers=[(b"Idempotency-Key", value)])
    assert reply.status_code == 400


async def _reserve(database: Database) -> Reservation | Replay | Busy:
    return await idempotency_store.reserve(
        database, tenant="acme", actor="a", key="k", body_hash="h", status=201, hours=1
    )


async def test_a_request_killed_before_its_commit_is_taken_over_and_its_late_effect_rolls_back(
    container: Serving, admin: Person, database: Database
) -> None:
    killed = await _reserve(database)
    assert isinstance(killed, Reservation)
    assert isinstance(await _reserve(database), Busy)
    async with database.begin("acme") as transaction:
        long_ago = killed.since - timedelta(seconds=idempotency_store.LEASE_S + 1)
        await transaction.execute(update(idempotency_keys).values(created_at=long_ago))
    killed.since = long_ago
    heir = await _reserve(database)
    assert isinstance(heir, Reservation)
    for held, draft in ((killed, GroupDraft(name="late")), (heir, GroupDraft(name="heir"))):
        token = idempotency_store.CURRENT.set(held)
        try:
            await Groups(database).create(admin.actor, draft)
        except Conflict:
            assert held is killed
        finally:
            idempotency_store.CURRENT.reset(token)
    assert [group["name"] for group in await all_items(admin, "/v1/groups")] == ["heir"]
    replay = await _reserve(database)
    assert isinstance(replay, Replay)
    assert replay.response["name"] == "heir"


async def test_a_request_killed_after_its_commit_is_replayed_not_repeated(admin: Person, database: Database) -> None:
    """The reply is stored by the effect's own transaction: no moment between the two."""
    held = await idempotency_store.reserve(
        database, tenant="acme", actor="a", key="k", body_hash="h", status=201, hours=1
    )
    assert isinstance(held, Reservation)
    token = idempotency_store.CURRENT.set(held)
    made = await Groups(database).create(admin.actor, GroupDraft(name="Finance"))
    idempotency_store.CURRENT.reset(token)
    assert await _reserve(database) == Replay(201, made.model_dump(mode="json"))


async def test_documents_killed_after_their_commit_are_replayed_with_every_receipt(
    admin: Person, container: Serving, database: Database
) -> None:
    space = await space_of(admin)
    held = await idempotency_store.reserve(
        database, tenant="acme", actor="a", key="k", body_hash="h", status=202, hours=1
    )
    assert isinstance(held, Reservation)
    token = idempotency_store.CURRENT.set(held)
    try:
        pages = [Upload(space_id=space, external_id=url, url=url) for url in ("https://one.test", "https://two.test")]
        first = await container.reception.receive(admin.actor, pages[0], last=False)
        assert isinstance(await _reserve(database), Busy), "a request that is half done has no reply yet"
        second = await container.reception.receive(admin.actor, pages[1], earlier=[first])
    finally:
        idempotency_store.CURRENT.reset(token)
    assert await _reserve(database) == Replay(202, Receipts(documents=[first, second]).model_dump(mode="json"))


async def test_expired_keys_are_forgotten(admin: Person, database: Database) -> None:
    await admin.http.post("/v1/spaces", json={"name": "one"}, headers=once("k"))
    async with database.begin("acme") as transaction:
        await transaction.execute(update(idempotency_keys).values(expires_at=transaction.now - timedelta(seconds=1)))
        assert await transaction.scalar(select(func.count()).select_from(spaces)) == 1
    assert (await admin.http.post("/v1/spaces", json={"name": "two"}, headers=once("k"))).status_code == 201
    async with database.begin("acme") as transaction:
        await transaction.execute(update(idempotency_keys).values(expires_at=transaction.now - timedelta(seconds=1)))
        assert await idempotency_store.drop_expired(transaction) == 1
