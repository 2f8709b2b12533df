"""Memory: what is kept of a person, who may see it, and that off means off."""

from __future__ import annotations

import pytest

from schemas.errors import Conflict, InvalidRequest, NotFound
from schemas.memory import MemoryDraft, MemorySwitch
from tests.fakes.openai_server import Reply
from tests.integration.agents.agency import Agency, build_agency, calls
from tests.world.builders import Person, World

pytestmark = pytest.mark.asyncio(loop_scope="session")
ASK = "[[plan]] Please."


async def texts(agency: Agency, who: Person | None = None) -> list[str | None]:
    actor = (who or agency.world.root).actor
    return [memory.text for memory in await agency.memories.of_person(actor, "", 1_000)]


async def remember(agency: Agency, *said: str, who: Person | None = None) -> None:
    for text in said:
        await agency.memories.add((who or agency.world.root).actor, MemoryDraft(text=text))


async def test_what_an_agent_remembers_is_a_proposal_that_later_sessions_are_told(agency: Agency) -> None:
    agency.plan(
        Reply(calls=[calls("remember", text="Prefers answers as tables.", kind="preference")]), Reply(text="Noted.")
    )
    await agency.ask(await agency.session(), ASK)
    (memory,) = await agency.memories.of_person(agency.world.root.actor, "", 10)
    assert (memory.text, memory.kind, memory.source) == ("Prefers answers as tables.", "preference", "proposed")
    await agency.ask(await agency.session(), "How should answers to me look?")
    system = agency.shown()[0]["content"]
    assert "Prefers answers as tables." in system


async def test_the_few_that_fit_the_question_are_told_and_no_more_than_fit(agency: Agency) -> None:
    await remember(agency, *(f"Colleague number {n} sits in room {n}." for n in range(20)), "The cat is called Pelle.")
    found = await agency.memories.recall(agency.world.root.actor, "What is my cat called?")
    assert len(found) == 5
    assert found[0]["text"] == "The cat is called Pelle."
    await remember(agency, *(f"{word} " * 60 for word in ("alpha", "beta", "gamma")))
    long = await agency.memories.recall(agency.world.root.actor, "alpha beta gamma")
    assert sum(len(row["text"]) for row in long) <= 600


async def test_saying_the_same_again_replaces_and_does_not_pile_up(agency: Agency) -> None:
    await remember(agency, "The office is in Umeå.", "The office is in Umeå.", "Lunch is at noon.")
    assert await texts(agency) == ["The office is in Umeå.", "Lunch is at noon."]


async def test_switched_off_nothing_is_remembered_or_recalled_and_what_was_there_stays(agency: Agency) -> None:
    await remember(agency, "The office is in Umeå.")
    actor = agency.world.root.actor
    await agency.memories.set_switch(actor, MemorySwitch(enabled=False))
    with pytest.raises(Conflict, match="switched off"):
        await remember(agency, "Lunch is at noon.")
    agency.plan(Reply(calls=[calls("remember", text="Never kept.")]), Reply(text="I may not."))
    await agency.ask(await agency.session(), ASK)
    assert "switched off" in agency.shown_text()
    assert "Umeå" not in agency.shown_text()
    assert await texts(agency) == ["The office is in Umeå."]


async def test_an_incognito_session_writes_no_memory(agency: Agency) -> None:
    agent = await agency.agent()
    session = await agency.incognito(agent.id)
    agency.plan(Reply(calls=[calls("remember", text="Never kept.")]), Reply(text="I will not."))
    await agency.ask(session, ASK)
    assert await texts(agency) == []
    assert "incognito" in agency.shown_text()


async def test_forgetting_is_a_write_that_is_asked_for(agency: Agency) -> None:
    await remember(agency, "The office is in Umeå.")
    (memory,) = await agency.memories.of_person(agency.world.root.actor, "", 10)
    agency.plan(Reply(calls=[calls("forget", memory_id=memory.id)]), Reply(text="Gone."))
    await agency.ask(await agency.session(), ASK, agency.decision("reject"))
    assert await texts(agency) == ["The office is in Umeå."]
    await agency.ask(await agency.session(), ASK, agency.decision("approve"))
    assert await texts(agency) == []


async def test_memories_are_their_person_s_alone(agency: Agency) -> None:
    await remember(agency, "The office is in Umeå.")
    (memory,) = await agency.memories.of_person(agency.world.root.actor, "", 10)
    stranger = await agency.world.person()
    assert await texts(agency, stranger) == []
    assert await agency.memories.recall(stranger.actor, "Where is the office?") == []
    with pytest.raises(NotFound):
        await agency.memories.remove(stranger.actor, memory.id)
    with pytest.raises(NotFound):
        await agency.memories.change(stranger.actor, memory.id, MemoryDraft(text="x"))


async def test_there_is_room_for_so_many_and_the_bound_is_named(world: World, agency: Agency) -> None:
    small = build_agency(world, agency.server, memories=2)
    await remember(small, "The office is in Umeå.", "Lunch is at noon.")
    with pytest.raises(InvalidRequest, match="PERDURE_AGENTS__MEMORIES=2"):
        await remember(small, "The cat is called Pelle.")


async def test_what_was_remembered_after_reading_a_document_goes_with_it(agency: Agency) -> None:
    world = agency.world
    reader = await world.person()
    space = await world.space(world.root, viewers=[reader])
    document = await world.ingest(world.root, space, "vault.md", "# Vault\n\nThe vault code is heliotrope.\n")
    agency.plan(
        Reply(calls=[calls("read_document", document_id=document.id)]),
        Reply(calls=[calls("remember", text="The vault code is heliotrope.")]),
        Reply(text="Noted."),
    )
    await agency.ask(await agency.session(reader), ASK, who=reader)
    assert await texts(agency, reader) == ["The vault code is heliotrope."]
    await world.reception.set_readers(world.root.actor, document.id, [])
    assert await texts(agency, reader) == [None], "withheld while it may not be read"
    assert await agency.memories.recall(reader.actor, "What is the vault code?") == []
    await world.remove(world.root, document.id)
    assert await texts(agency, reader) == []
    assert "heliotrope" not in await world.everything_stored()
