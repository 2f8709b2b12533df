"""Who finds what, at this moment (invariants 9 and 12)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from schemas.errors import Conflict, NotFound, PermanentFailure
from schemas.identity import GroupDraft, UserChange
from tests.world.builders import TENANT, Person, World

pytestmark = pytest.mark.asyncio(loop_scope="session")
TEXT = "# Vault\n\nThe vault code is kept by Karin."
QUERY = "who keeps the vault code"


async def finds(world: World, who: Person) -> bool:
    return any("Karin" in text for text in await world.found(who, QUERY))


async def test_readers_owner_and_managers_find_and_nobody_else(world: World) -> None:
    owner, manager, in_group, named, other = [await world.person() for _ in range(5)]
    group = await world.identity.groups.create(world.root.actor, GroupDraft(name="Finance"))
    await world.identity.groups.add_member(world.root.actor, group.id, in_group.id)
    space = await world.space(world.root, everyone="viewer")
    await world.grant(world.root, space, f"user:{owner.id}", "contributor")
    await world.grant(world.root, space, f"user:{manager.id}", "manager")
    document = await world.ingest(owner, space, "a.md", TEXT, readers=[f"user:{named.id}", f"group:{group.id}"])
    people = {"owner": owner, "manager": manager, "in_group": in_group, "named": named, "other": other}
    assert {name for name, who in people.items() if await finds(world, who)} == people.keys() - {"other"}
    await world.reception.set_readers(world.root.actor, document.id, [])
    await world.work.everything(TENANT)
    assert {name for name, who in people.items() if await finds(world, who)} == {"owner", "manager"}
    await world.reception.set_readers(world.root.actor, document.id, ["space"])
    await world.work.everything(TENANT)
    assert {name for name, who in people.items() if await finds(world, who)} == people.keys()


async def test_a_named_reader_without_a_grant_on_the_space_finds_nothing(world: World) -> None:
    named = await world.person()
    space = await world.space(world.root)
    await world.ingest(world.root, space, "a.md", TEXT, readers=[f"user:{named.id}"])
    assert not await finds(world, named)
    await world.grant(world.root, space, f"user:{named.id}")
    assert await finds(world, named)


async def test_an_admin_of_the_tenant_finds_nothing_by_that(world: World) -> None:
    owner, admin = await world.person(), await world.person("admin")
    space = await world.space(owner)
    await world.ingest(owner, space, "a.md", TEXT)
    assert not await finds(world, admin)


async def test_another_tenant_finds_nothing_and_its_spaces_are_unknown_here(world: World) -> None:
    space = await world.space(world.root, name="handbook", everyone="viewer")
    await world.ingest(world.root, space, "a.md", TEXT)
    stranger = await world.person("admin", tenant="globex")
    await world.space(stranger, name="handbook")
    assert not await finds(world, stranger)
    with pytest.raises(NotFound):
        await world.search(stranger, QUERY, space=space)
    assert await world.found(stranger, QUERY, space="handbook") == []


async def test_unknown_and_hidden_spaces_are_the_same_not_found(world: World) -> None:
    hidden = await world.space(world.root, name="board")
    reader = await world.person()
    said = []
    for name in (hidden, "board", "no such space"):
        with pytest.raises(NotFound) as failure:
            await world.search(reader, QUERY, space=name)
        said.append(failure.value.detail.replace(name, "X"))
    assert len(set(said)) == 1


Revoke = Callable[[World, Person, str, str], Awaitable[None]]


async def _lose_grant(world: World, who: Person, space: str, document: str) -> None:
    await world.identity.spaces.take(world.root.caller, space, f"user:{who.id}")


async def _lose_reading(world: World, who: Person, space: str, document: str) -> None:
    await world.reception.set_readers(world.root.actor, document, [])


async def _be_disabled(world: World, who: Person, space: str, document: str) -> None:
    await world.identity.users.change(world.root.actor, who.id, UserChange(disabled=True))


async def _lose_key(world: World, who: Person, space: str, document: str) -> None:
    await world.identity.api_keys.revoke(world.root.actor, who.caller.key_id)


async def _lose_document(world: World, who: Person, space: str, document: str) -> None:
    await world.reception.remove(world.root.actor, document)


async def _lose_space(world: World, who: Person, space: str, document: str) -> None:
    await world.reception.remove_space(world.root.actor, space)


REVOCATIONS = [_lose_grant, _lose_reading, _be_disabled, _lose_key, _lose_document, _lose_space]


@pytest.mark.parametrize("revoke", REVOCATIONS, ids=[each.__name__ for each in REVOCATIONS])
async def test_a_right_lost_between_recall_and_verification_shows_nothing(world: World, revoke: Revoke) -> None:
    reader = await world.person()
    space = await world.space(world.root, viewers=[reader])
    document = await world.ingest(world.root, space, "a.md", TEXT)
    assert await finds(world, reader)
    hits_before = (await world.search(reader, QUERY)).hits
    assert hits_before

    async def act() -> None:
        await revoke(world, reader, space, document.id)

    world.vectors.after_search = act
    result = await world.search(reader, QUERY, explain=True)
    assert result.hits == []
    assert [leg.hits for leg in result.legs] == [0, 0]


@pytest.mark.parametrize("revoke", REVOCATIONS, ids=[each.__name__ for each in REVOCATIONS])
async def test_a_right_lost_between_retrieving_and_writing_an_answer_leaves_no_word_in_it(
    world: World, revoke: Revoke
) -> None:
    reader = await world.person()
    space = await world.space(world.root, viewers=[reader])
    document = await world.ingest(world.root, space, "a.md", TEXT)
    work = await world.asked(reader, "Who keeps the vault code?")
    await world.work.retrieving.run(work)
    await revoke(world, reader, space, document.id)
    await world.work.generating.run(work, attempt="1")
    texts = [event.data for event in await world.events(work.run_id) if event.type in ("token", "answer.text")]
    assert "Karin" not in str(texts)
    assert await world.count("answers", answered=False) == 1


@pytest.mark.parametrize("revoke", [_be_disabled, _lose_key], ids=["disabled", "revoked"])
async def test_who_has_no_rights_any_more_cannot_search_or_be_answered(world: World, revoke: Revoke) -> None:
    reader = await world.person()
    space = await world.space(world.root, viewers=[reader])
    await world.ingest(world.root, space, "a.md", TEXT)
    work = await world.asked(reader, "Who keeps the vault code?")
    await revoke(world, reader, space, "")
    with pytest.raises(NotFound):
        await world.search(reader, QUERY)
    with pytest.raises(PermanentFailure):
        await world.work.retrieving.run(work)


async def test_group_membership_given_and_taken_quickly_holds_each_time(world: World) -> None:
    """B106"""
    reader = await world.person()
    group = await world.identity.groups.create(world.root.actor, GroupDraft(name="Finance"))
    space = await world.space(world.root, everyone="viewer")
    await world.ingest(world.root, space, "a.md", TEXT, readers=[f"group:{group.id}"])
    for _ in range(3):
        assert not await finds(world, reader)
        await world.identity.groups.add_member(world.root.actor, group.id, reader.id)
        assert await finds(world, reader)
        await world.identity.groups.remove_member(world.root.actor, group.id, reader.id)


async def test_a_key_without_the_read_scope_finds_nothing(world: World) -> None:
    writer = await world.person(scopes=["write"])
    space = await world.space(world.root, contributors=[writer])
    await world.ingest(world.root, space, "a.md", TEXT)
    assert await world.found(writer, QUERY) == []


async def test_a_name_taken_by_a_hidden_document_shows_no_twin_and_no_text(world: World) -> None:
    ann, ben = await world.person(), await world.person()
    space = await world.space(world.root, contributors=[ann, ben])
    await world.ingest(ann, space, "a.md", TEXT, readers=[])
    with pytest.raises(Conflict):
        await world.upload(ben, space, "a.md", TEXT)
    assert not await finds(world, ben)
