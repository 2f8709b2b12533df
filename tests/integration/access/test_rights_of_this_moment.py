"""Access, index filters, withholding and the first key, over a real Postgres."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from sqlalchemy import func, insert, select

from schemas.access import Access, Actor
from schemas.identifiers import new_id
from schemas.identity import ApiKeyCreated, ApiKeyDraft, GrantDraft, SpaceDraft, UserView
from schemas.search import SearchFilters
from services.access import api_keys, users, withholding
from services.access.access_filter import index_filter
from services.access.api_key import new_key
from services.access.authenticate import Caller, authenticate
from services.access.bootstrap import FIRST_TENANT, bootstrap
from services.access.identity import Identity
from services.access.load_access import load_access
from services.stores import identity_store
from services.stores.database import Database, Transaction
from services.stores.tables.documents import documents
from services.stores.tables.identity import api_keys as keys_table
from services.stores.tables.runs import sources


async def a_caller(database: Database, role: str = "member", tenant: str = "acme") -> Caller:
    key = new_key()
    async with database.begin(tenant) as transaction:
        await identity_store.add_tenant(transaction, tenant)
        view = UserView.model_validate(
            {"id": new_id(), "email": f"{new_id()}@example.org", "name": "A", "role": role, "disabled": False}
        )
        await users.add(transaction, view, by=view.id)
        created = ApiKeyCreated(id=new_id(), key=key)
        await api_keys.add(transaction, created, ApiKeyDraft(user_id=view.id), by=view.id)
    return await authenticate(database, key)


async def access_of(database: Database, actor: Actor) -> Access | None:
    async with database.begin(actor.tenant) as transaction:
        return await load_access(transaction, actor)


async def test_the_strongest_of_all_grants_that_reach_a_user_counts(database: Database) -> None:
    identity = Identity.of(database)
    owner, other = await a_caller(database), await a_caller(database)
    space = (await identity.spaces.create(owner, SpaceDraft(name="one"))).id
    assert (await access_of(database, other.actor)).spaces == {}  # type: ignore[union-attr]
    for principal, role in (("tenant", "viewer"), (f"user:{other.actor.user}", "contributor")):
        await identity.spaces.give(owner, space, principal, GrantDraft.model_validate({"role": role}))
    assert (await access_of(database, other.actor)).spaces == {space: "contributor"}  # type: ignore[union-attr]
    assert (await access_of(database, owner.actor)).spaces == {space: "manager"}  # type: ignore[union-attr]


async def test_rights_are_loaded_in_one_query_and_end_with_key_or_user(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = await a_caller(database)
    statements = 0

    def counted(send: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
        async def call(*arguments: object) -> object:
            nonlocal statements
            statements += 1
            return await send(*arguments)

        return call

    with monkeypatch.context() as patch:
        for way in ("_send", "execute"):  # prepared statements go by the one, all others by the other
            patch.setattr(Transaction, way, counted(getattr(Transaction, way)))
        assert await access_of(database, caller.actor) is not None
    assert statements == 1
    await Identity.of(database).api_keys.revoke(caller.actor, caller.key_id)
    assert await access_of(database, caller.actor) is None
    assert await access_of(database, caller.actor.model_copy(update={"key": None})) is not None
    async with database.begin("acme") as transaction:
        await identity_store.change_user(transaction, caller.actor.user, {"disabled_at": transaction.now})
    assert await access_of(database, caller.actor.model_copy(update={"key": None})) is None


async def test_rights_in_one_tenant_are_nothing_in_another(database: Database) -> None:
    caller = await a_caller(database)
    await a_caller(database, tenant="globex")
    assert await access_of(database, caller.actor.model_copy(update={"tenant": "globex"})) is None


async def test_a_filter_asks_an_index_only_for_what_the_key_may_see(database: Database) -> None:
    identity = Identity.of(database)
    caller, other = await a_caller(database), await a_caller(database)
    mine = (await identity.spaces.create(caller, SpaceDraft(name="mine"))).id
    theirs = (await identity.spaces.create(other, SpaceDraft(name="theirs"))).id
    access = await access_of(database, caller.actor)
    assert access is not None
    asked = index_filter(access, [mine, theirs], SearchFilters(tags=["x"]))
    assert (asked.tenant, list(asked.spaces), list(asked.tags)) == ("acme", [mine], ["x"])
    assert set(asked.readers) == {f"user:{caller.actor.user}", f"space:{mine}", f"manager:{mine}"}
    assert list(index_filter(access, None, None).spaces) == [mine]
    assert index_filter(access, [theirs], None).matches_nothing
    assert index_filter(access, None, SearchFilters(documents=[])).matches_nothing
    assert index_filter(access.model_copy(update={"scopes": frozenset({"write"})}), None, None).matches_nothing


async def test_a_record_is_withheld_by_one_forbidden_source_and_stale_by_one_newer_version(database: Database) -> None:
    identity = Identity.of(database)
    owner, reader = await a_caller(database), await a_caller(database)
    space = (await identity.spaces.create(owner, SpaceDraft(name="one"))).id
    await identity.spaces.give(owner, space, "tenant", GrantDraft(role="viewer"))
    async with database.begin("acme") as transaction:
        for name, readers, live in (("open", ["space"], 1), ("newer", ["space"], 2), ("closed", ["user:x"], 1)):
            row = {"id": name, "space_id": space, "readers": readers, "live_version": live, "newest_version": live}
            extra = {"external_id": name, "source": "upload", "owner": owner.actor.user, "state": "ready"}
            await transaction.execute(insert(documents).values(**row, **extra))
        for record, names in (("a", ["open"]), ("b", ["open", "newer"]), ("c", ["open", "closed"]), ("d", ["gone"])):
            rows = [{"record": record, "document_id": name, "version": 1} for name in names]
            await transaction.execute(insert(sources), rows)
        verdicts = {
            (name, record): await withholding.of_record(transaction, who.actor, record)
            for name, who in (("owner", owner), ("reader", reader))
            for record in ("a", "b", "c", "d", "none")
        }
    flags = {place: (verdict.withheld, verdict.stale) for place, verdict in verdicts.items()}
    assert flags == {
        ("owner", "a"): (False, False), ("owner", "b"): (False, True), ("owner", "c"): (False, False),
        ("owner", "d"): (True, False), ("owner", "none"): (False, False),
        ("reader", "a"): (False, False), ("reader", "b"): (False, True), ("reader", "c"): (True, False),
        ("reader", "d"): (True, False), ("reader", "none"): (False, False),
    }  # fmt: skip


async def test_the_first_key_is_made_once_however_many_ask(database: Database) -> None:
    made = await asyncio.gather(*(bootstrap(database) for _ in range(5)))
    keys = [key for key in made if key is not None]
    assert len(keys) == 1
    caller = await authenticate(database, keys[0])
    assert (caller.actor.tenant, caller.role, caller.is_admin) == (FIRST_TENANT, "admin", True)
    async with database.begin(FIRST_TENANT) as transaction:
        assert await transaction.scalar(select(func.count()).select_from(keys_table)) == 1


async def test_a_key_written_down_before_is_the_one_that_is_made(database: Database) -> None:
    key = new_key()
    assert await bootstrap(database, key) == key
    assert await bootstrap(database, new_key()) is None
    assert (await authenticate(database, key)).is_admin


async def test_only_the_hash_of_a_key_is_stored(database: Database) -> None:
    key = await bootstrap(database)
    assert key is not None
    async with database.begin(FIRST_TENANT) as transaction:
        rows = [dict(row) for row in await transaction.all(select(keys_table))]
    assert key not in str(rows)
    assert key.removeprefix("prd_") not in str(rows)
