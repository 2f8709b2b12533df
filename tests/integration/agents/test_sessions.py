"""Sessions: one turn at a time, messages that count once, and modes that mean what they meant when they were sent."""

from __future__ import annotations

import asyncio

import pytest

from schemas.conversations import ForkDraft, MessageDraft
from schemas.errors import Conflict, InvalidRequest, NotFound
from services.agents.turn_reading import TurnWork
from services.events import run_cancelling
from tests.fakes.openai_server import Reply
from tests.integration.agents.agency import Agency, build_agency, calls
from tests.world.builders import World

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def running_turn(agency: Agency, session: str, text: str = "[[plan]] Begin.") -> TurnWork:
    """A turn that has begun and not thought yet."""
    run_id = await agency.say(session, text)
    tenant = agency.world.root.actor.tenant
    assert (await agency.queue.next(tenant, session)).run_id == run_id
    work = TurnWork(tenant, run_id, session)
    await agency.begin(work)
    return work


async def test_messages_are_answered_in_their_order_each_by_its_own_turn(agency: Agency) -> None:
    session = await agency.session()
    sent = [await agency.say(session, f"Message {number}") for number in range(3)]
    assert await agency.run_all(session) == sent
    spoken = [(message.role, message.run_id) for message in await agency.messages(session)]
    assert [run for role, run in spoken if role == "assistant"] == sent


async def test_a_later_turn_is_shown_the_earlier_ones(agency: Agency) -> None:
    session = await agency.session()
    await agency.ask(session, "My name is Ylva.")
    await agency.ask(session, "What is my name?")
    roles = [message["role"] for message in agency.shown()]
    assert roles[1:] == ["user", "assistant", "user"]
    assert "My name is Ylva." in agency.shown_text()


async def test_the_same_message_id_counts_once_for_ever_and_not_for_another_text(agency: Agency) -> None:
    session = await agency.session()
    first = await agency.say(session, "Once.", message_id="m-1")
    assert await agency.say(session, "Once.", message_id="m-1") == first
    await agency.run_all(session)
    assert await agency.say(session, "Once.", message_id="m-1") == first
    assert await agency.run_all(session) == []
    with pytest.raises(Conflict) as other:
        await agency.say(session, "Twice.", message_id="m-1")
    assert other.value.type == "message_id_taken"


async def test_twenty_posts_of_one_message_at_once_are_one_message(agency: Agency) -> None:
    session = await agency.session()
    runs = await asyncio.gather(*(agency.say(session, "Once.", message_id="m-1") for _ in range(20)))
    assert len(set(runs)) == 1
    assert len(await agency.messages(session)) == 1


async def test_steering_reaches_the_running_turn_at_its_next_thought(agency: Agency) -> None:
    agency.plan(Reply(calls=[calls("list_documents")]), Reply(text="In French then."))
    session = await agency.session()
    work = await running_turn(agency, session)
    (call,) = (await agency.thinking.run(work, 1, "attempt-1")).calls
    assert await agency.say(session, "Answer in French.", mode="steer") == work.run_id
    await agency.call(work, call)
    await agency.thinking.run(work, 2, "attempt-2")
    assert [message["content"] for message in agency.shown() if message["role"] == "user"] == [
        "[[plan]] Begin.",
        "Answer in French.",
    ]


async def test_a_steer_that_comes_after_the_last_word_is_still_answered_by_this_turn(agency: Agency) -> None:
    agency.plan(Reply(text="Done."), Reply(text="In French too."))
    session = await agency.session()
    work = await running_turn(agency, session)
    assert (await agency.thinking.run(work, 1, "attempt-1")).final
    await agency.say(session, "In French as well.", mode="steer")
    end = agency.ended()
    assert await agency.ending.end(work, end) == {"steered": 1}
    await agency.thinking.run(work, 2, "attempt-2")
    assert await agency.ending.end(work, end) == {}
    assert (await agency.messages(session))[-1].text == "Done. \n\nIn French too. "


async def test_a_steer_when_no_turn_runs_has_a_turn_of_its_own(agency: Agency) -> None:
    session = await agency.session()
    run_id = await agency.say(session, "Hello.", mode="steer")
    assert await agency.run_all(session) == [run_id]


async def test_an_interrupt_stops_the_running_turn_and_goes_before_what_waits(agency: Agency) -> None:
    session = await agency.session()
    work = await running_turn(agency, session)
    waiting = await agency.say(session, "Later.")
    urgent = await agency.say(session, "Now!", mode="interrupt")
    assert (await agency.run(work.run_id))["cancel_requested_at"] is not None
    await agency.ending.end(work, agency.ended("cancelled"))
    assert await agency.run_all(session) == [urgent, waiting]


async def test_reject_is_refused_while_a_turn_runs_and_queued_otherwise(agency: Agency) -> None:
    session = await agency.session()
    work = await running_turn(agency, session)
    with pytest.raises(Conflict) as refused:
        await agency.say(session, "Me too.", mode="reject")
    assert (refused.value.type, refused.value.extra["run_id"]) == ("turn_running", work.run_id)
    await agency.ending.end(work, agency.ended("cancelled"))
    assert await agency.run_all(session) == []
    run_id = await agency.say(session, "Me too.", mode="reject")
    assert await agency.run_all(session) == [run_id]


async def test_two_turns_of_one_session_never_overlap(agency: Agency) -> None:
    session = await agency.session()
    work = await running_turn(agency, session)
    await agency.say(session, "Next.")
    chosen = [await agency.queue.next(work.tenant, session) for _ in range(3)]
    assert {(each.run_id, each.adopted) for each in chosen} == {(work.run_id, True)}


async def test_a_stopped_turn_keeps_what_was_streamed_and_withdraws_what_it_asked(agency: Agency) -> None:
    agency.plan(Reply(text="I will ring.", calls=[calls("ring_bell")]))
    session = await agency.session()
    work = await running_turn(agency, session)
    (call,) = (await agency.thinking.run(work, 1, "attempt-1")).calls
    assert call.approval_id is not None
    await agency.ending.end(work, agency.ended("cancelled"))
    assert (await agency.messages(session))[-1].text == "I will ring. "
    request = await agency.approvals.get(agency.world.root.actor, call.approval_id)
    assert request.state == "cancelled"
    assert [event.type for event in await agency.events(work.run_id)][-1] == "run.cancelled"
    with pytest.raises(Conflict):
        await agency.decision("approve")(request)


async def test_a_turn_that_its_session_has_not_come_to_is_cancelled_at_once(agency: Agency) -> None:
    session = await agency.session()
    work = await running_turn(agency, session)
    queued = await agency.say(session, "Later.")
    async with agency.world.database.begin(work.tenant) as transaction:
        for run_id in (queued, work.run_id):
            await run_cancelling.cancel(transaction, run_id, agency.world.root.actor.user)
    row, running = await agency.run(queued), await agency.run(work.run_id)
    assert (row["state"], row["cancelled_by"]) == ("cancelled", agency.world.root.actor.user)
    assert [event.type for event in await agency.events(queued)][-1] == "run.cancelled"
    assert running["ended_at"] is None, "a turn under way is asked, and ends with what it had said"
    await agency.ending.end(work, agency.ended("cancelled"))
    assert await agency.run_all(session) == []


async def test_a_fork_goes_on_from_its_turn_and_does_not_see_what_came_after(agency: Agency) -> None:
    session = await agency.session()
    first = await agency.ask(session, "The word is heron.")
    await agency.ask(session, "The word is plover.")
    actor = agency.world.root.actor
    fork = await agency.sessions.fork(actor, session, ForkDraft(after_run_id=first["id"]))
    await agency.ask(fork.id, "Which word?")
    assert "heron" in agency.shown_text()
    assert "plover" not in agency.shown_text()
    again = await agency.sessions.fork(actor, fork.id, ForkDraft(after_run_id=first["id"]))
    await agency.ask(again.id, "Which word?")
    assert "heron" in agency.shown_text()
    with pytest.raises(NotFound):
        await agency.sessions.fork(actor, await agency.session(), ForkDraft(after_run_id=first["id"]))


async def test_a_session_is_its_user_s_alone(agency: Agency) -> None:
    session = await agency.session()
    stranger = (await agency.world.person()).actor
    for attempt in (
        agency.sessions.get(stranger, session),
        agency.sessions.messages(stranger, session, 0, 10),
        agency.sessions.send(stranger, session, MessageDraft(text="Hello.")),
        agency.sessions.fork(stranger, session, ForkDraft(after_run_id="x")),
    ):
        with pytest.raises(NotFound):
            await attempt
    assert await agency.sessions.newest(stranger, None, 10) == []


async def test_messages_have_bounds_that_are_named(world: World, agency: Agency) -> None:
    small = build_agency(world, agency.server, message_chars=10, queued_messages=2)
    session = await small.session()
    with pytest.raises(InvalidRequest, match="PERDURE_AGENTS__MESSAGE_CHARS"):
        await small.say(session, "x" * 11)
    await small.say(session, "one")
    await small.say(session, "two")
    with pytest.raises(Conflict, match="PERDURE_AGENTS__QUEUED_MESSAGES"):
        await small.say(session, "three")
