"""A turn: what the model is shown, what becomes of its calls, and what stands afterwards."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from schemas.errors import Conflict, InvalidRequest, NotFound
from services.agents.turn_reading import TurnWork
from services.stores import usage_store
from tests.fakes.openai_server import Reply
from tests.integration.agents.agency import Agency, build_agency, calls
from tests.world.builders import World

pytestmark = pytest.mark.asyncio(loop_scope="session")
POLICY = "# Travel\n\nTravel above 2,000 euro is approved by the head of finance, Pernilla Åberg.\n"
RECEIPTS = "# Receipts\n\nReceipts are handed in within 30 days of the trip.\n"
QUESTION = "[[plan]] Who approves travel, and when are receipts due?"


async def library(world: World) -> tuple[str, str, str]:
    """The space and its two documents."""
    space = await world.space(world.root)
    travel = await world.ingest(world.root, space, "travel.md", POLICY)
    receipts = await world.ingest(world.root, space, "receipts.md", RECEIPTS)
    return space, travel.id, receipts.id


async def test_what_two_readings_gave_is_cited_with_quotes_that_stand_in_the_documents(agency: Agency) -> None:
    space, travel, receipts = await library(agency.world)
    agency.plan(
        Reply(text="Let me look.", calls=[calls("search", query="who approves travel", spaces=[space])]),
        Reply(calls=[calls("read_document", document_id=receipts), calls("read_document", document_id=travel)]),
        Reply(text="The head of finance approves travel [1]. Receipts are handed in within 30 days [2]."),
    )
    session = await agency.session(spaces=[space])
    run = await agency.ask(session, QUESTION)
    assert (run["state"], run["error"]) == ("succeeded", None)
    (_, reply) = await agency.messages(session)
    assert reply.text is not None
    assert reply.text.startswith("Let me look.")
    assert {citation.document_id for citation in reply.citations} <= {travel, receipts}
    for citation in reply.citations:
        document = await agency.world.document(agency.world.root, citation.document_id)
        assert (await agency.world.text(document))[citation.start : citation.end] == citation.quote


async def test_the_stream_of_a_turn_adds_up_to_its_text_and_names_every_call_and_result(agency: Agency) -> None:
    space, travel, _ = await library(agency.world)
    agency.plan(
        Reply(text="First.", calls=[calls("read_document", document_id=travel)]),
        Reply(text="Then last.", thinking="Hm."),
    )
    run = await agency.ask(await agency.session(spaces=[space]), QUESTION)
    events = await agency.events(run["id"])
    streamed = "".join(event.data["text"] for event in events if event.type == "token")
    (whole,) = [event.data["text"] for event in events if event.type == "answer.text"]
    assert streamed == whole == "First. \n\nThen last. "
    assert [event.data["text"] for event in events if event.type == "thinking"] == ["Hm."]
    called, result = (event.data for event in events if event.type.startswith("tool."))
    assert (called["tool"], called["risk"], called["arguments"]) == ("read_document", "read", {"document_id": travel})
    assert (result["call_id"], result["ok"]) == (called["call_id"], True)
    assert [event.type for event in events][-3:] == ["citations", "usage", "run.succeeded"]
    assert run["usage"]["output_tokens"] > 0


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ({"name": "ring_bell", "arguments": "{'times': 2}"}, "not valid JSON"),
        ({"name": "ring_bell", "arguments": '{"times": "often"}'}, "do not fit the tool"),
        ({"name": "ring_bell", "arguments": '{"volume": 11}'}, "do not fit the tool"),
        ({"name": "ring_bell", "arguments": "[1]"}, "one JSON object"),
        ({"name": "sound_horn", "arguments": "{}"}, "There is no tool 'sound_horn'"),
        ({"name": "read_document", "arguments": '{"document_id": "nowhere"}'}, "no document with this id"),
    ],
    ids=["broken JSON", "wrong type", "unknown argument", "no object", "unknown tool", "unknown document"],
)
async def test_a_call_that_cannot_be_made_goes_back_to_the_model_as_an_error_and_does_nothing(
    agency: Agency, call: dict[str, str], said: str
) -> None:
    agency.plan(Reply(calls=[call]), Reply(text="I see."))
    run = await agency.ask(await agency.session(mode="auto"), QUESTION)
    assert run["state"] == "succeeded"
    assert agency.bell.heard == []
    results = [message for message in agency.shown() if message["role"] == "tool"]
    assert len(results) == 1
    assert said in results[0]["content"]


async def test_every_call_in_the_history_has_a_result_beside_it(agency: Agency) -> None:
    agency.plan(
        Reply(calls=[{"name": "list_documents", "arguments": "{broken"}, calls("list_documents")]), Reply(text="Done.")
    )
    await agency.ask(await agency.session(), QUESTION)
    asked = [call["id"] for message in agency.shown() for call in message.get("tool_calls", [])]
    answered = [message["tool_call_id"] for message in agency.shown() if message["role"] == "tool"]
    assert asked == answered
    assert len(asked) == 2


async def test_an_empty_reply_is_pointed_out_and_after_three_the_turn_ends(agency: Agency) -> None:
    agency.server.script("chat", Reply(text=""), Reply(text="Here I am."), *[Reply(text="")] * 3)
    session = await agency.session()
    assert (await agency.ask(session, "Are you there?"))["state"] == "succeeded"
    assert "Your reply was empty" in agency.shown_text()
    run = await agency.ask(session, "And now?")
    assert (run["state"], run["error"]["code"]) == ("failed", "empty_reply")


async def test_a_reply_that_is_cut_off_goes_on_once_and_then_concludes(agency: Agency) -> None:
    agency.plan(Reply(text="One two", finish_reason="length"), Reply(text="three four", finish_reason="length"))
    session = await agency.session()
    run = await agency.ask(session, QUESTION)
    assert run["state"] == "succeeded"
    assert (await agency.messages(session))[1].text == "One two three four "
    assert "Go on exactly where it stopped" in agency.shown_text()
    assert "tools" not in agency.server.received[-1].body


async def test_on_the_last_iteration_no_tools_are_offered(agency: Agency) -> None:
    agency.plan(Reply(calls=[calls("list_documents")]), Reply(text="That is what I have."))
    run = await agency.ask(await agency.session(limits={"iterations": 2}), QUESTION)
    assert run["state"] == "succeeded"
    assert ["tools" in request.body for request in agency.server.received] == [True, False]
    assert "Conclude now" in agency.shown_text()


async def test_an_equal_call_is_answered_twice_then_told_then_ends_the_calling(agency: Agency) -> None:
    again = Reply(calls=[calls("list_documents")])
    agency.plan(again, again, again, again, Reply(text="Enough."))
    run = await agency.ask(await agency.session(), QUESTION)
    assert run["state"] == "succeeded"
    results = [message["content"] for message in agency.shown() if message["role"] == "tool"]
    assert ["twice already" in result for result in results] == [False, False, True, True]
    assert "tools" not in agency.server.received[-1].body


@pytest.mark.parametrize(
    ("limits", "named"), [({"tokens": 1}, "limits.tokens"), ({"wall_seconds": 0.000001}, "limits.wall_seconds")]
)
async def test_a_turn_over_its_budget_stops_with_its_bound_by_name_and_keeps_what_it_said(
    agency: Agency, limits: dict[str, float], named: str
) -> None:
    agency.plan(Reply(text="I begin.", calls=[calls("list_documents")]), Reply(text="Never said."))
    session = await agency.session(limits=limits)
    run = await agency.ask(session, QUESTION)
    assert (run["state"], run["error"]["code"]) == ("failed", "budget_exceeded")
    assert named in run["error"]["detail"]
    assert (await agency.messages(session))[1].text == "I begin. "
    assert len(agency.server.received) == 1


async def test_every_reply_is_in_the_ledger_once_with_its_cost_where_the_price_is_known(agency: Agency) -> None:
    agency.plan(Reply(calls=[calls("list_documents")]), Reply(text="Done."))
    session = await agency.session(model="openai-chat:gpt-4o")
    run = await agency.ask(session, QUESTION)
    async with agency.world.database.begin(run["tenant"]) as transaction:
        day = {"since": run["started_at"], "until": transaction.now + timedelta(seconds=1)}
        (line,) = await usage_store.grouped(transaction, "model", user=run["actor_user"], **day)
        nobody = await usage_store.grouped(transaction, "model", user="nobody", **day)
    assert (line["name"], line["replies"], nobody) == ("openai-chat:gpt-4o", 2, [])
    assert line["output_tokens"] == run["usage"]["output_tokens"]
    assert line["cost"] == pytest.approx(run["usage"]["cost"], rel=0.01)
    assert line["cost"] > 0


@pytest.mark.parametrize("whose", ["user", "tenant"])
async def test_a_used_up_day_stops_further_turns_by_name(world: World, agency: Agency, whose: str) -> None:
    limits: dict[str, Any] = {f"{whose}_tokens_per_day": 5}
    bounded = build_agency(world, agency.server, **limits)
    session = await bounded.session()
    assert (await bounded.ask(session, "Say a few words."))["state"] == "succeeded"
    run = await bounded.ask(session, "And more.")
    assert (run["state"], run["error"]["code"]) == ("failed", "budget_exceeded")
    assert f"PERDURE_AGENTS__{whose.upper()}_TOKENS_PER_DAY" in run["error"]["detail"]


async def test_a_document_removed_during_the_turn_reaches_the_model_no_more(agency: Agency) -> None:
    space, travel, _ = await library(agency.world)
    agency.plan(Reply(calls=[calls("read_document", document_id=travel)]), Reply(text="It says nothing."))
    session = await agency.session(spaces=[space])
    run_id = await agency.say(session, QUESTION)
    work = TurnWork(agency.world.root.actor.tenant, run_id, session)
    await agency.begin(work)
    (call,) = (await agency.thinking.run(work, 1, "attempt-1")).calls
    await agency.call(work, call)
    await agency.world.remove(agency.world.root, travel)
    await agency.thinking.run(work, 2, "attempt-2")
    assert "Pernilla" not in agency.shown_text()
    assert "withheld" in agency.shown_text()


async def test_what_a_reader_may_not_read_any_more_is_withheld_from_messages_and_later_prompts(agency: Agency) -> None:
    world = agency.world
    reader = await world.person()
    space = await world.space(world.root, viewers=[reader])
    document = await world.ingest(world.root, space, "travel.md", POLICY)
    agency.plan(
        Reply(calls=[calls("read_document", document_id=document.id)]),
        Reply(text="Pernilla Åberg approves travel [1]."),
    )
    session = await agency.session(reader)
    await agency.ask(session, QUESTION, who=reader)
    assert (await agency.messages(session, reader))[1].citations
    await world.reception.set_readers(world.root.actor, document.id, [])
    (_, reply) = await agency.messages(session, reader)
    assert (reply.text, reply.withheld, reply.citations) == (None, True, [])
    agency.plan(Reply(text="I cannot say."))
    await agency.ask(session, "[[plan]] Say it again.", who=reader)
    assert "Pernilla" not in agency.shown_text()


async def test_a_removed_document_s_words_leave_turns_messages_and_requests_for_good(agency: Agency) -> None:
    space, travel, _ = await library(agency.world)
    again = calls("write_document", space=space, external_id="copy.md", title="Copy", text="Pernilla Åberg decides.")
    agency.plan(
        Reply(calls=[calls("read_document", document_id=travel)]),
        Reply(text="Pernilla Åberg it is.", thinking="Pernilla, hm.", calls=[again]),
        Reply(text="Pernilla Åberg approves travel [1]."),
    )
    session = await agency.session(spaces=[space])
    await agency.ask(session, QUESTION, agency.decision("reject", feedback="Not Pernilla."))
    assert "Pernilla" in await agency.world.everything_stored()
    await agency.world.remove(agency.world.root, travel)
    assert "Pernilla" not in await agency.world.everything_stored()
    assert (await agency.messages(session))[1].withheld


async def test_an_agent_kept_to_a_space_finds_and_reads_nothing_outside(agency: Agency) -> None:
    inside, _, _ = await library(agency.world)
    outside = await agency.world.space(agency.world.root)
    other = await agency.world.ingest(agency.world.root, outside, "secret.md", "# Vault\n\nThe code is heliotrope.\n")
    agency.plan(
        Reply(calls=[calls("search", query="vault code"), calls("search", query="vault", spaces=[outside])]),
        Reply(calls=[calls("read_document", document_id=other.id)]),
        Reply(text="Nothing."),
    )
    await agency.ask(await agency.session(spaces=[inside]), QUESTION)
    assert "heliotrope" not in agency.shown_text()
    assert "does not work in that space" in agency.shown_text()


async def test_limits_of_this_server_bound_what_an_agent_allows_itself(world: World, agency: Agency) -> None:
    bounded = build_agency(world, agency.server, iterations=1, calls_per_reply=1)
    bounded.plan(Reply(calls=[calls("list_documents"), calls("list_documents")], text="Look."))
    run = await bounded.ask(await bounded.session(limits={"iterations": 50}), QUESTION)
    assert run["state"] == "succeeded"
    assert "tools" not in agency.server.received[0].body


async def test_an_agent_names_tools_that_exist_and_a_model_that_can_act(agency: Agency) -> None:
    with pytest.raises(InvalidRequest, match="There is no tool 'fly'"):
        await agency.agent(tools=["fly"])
    with pytest.raises(InvalidRequest, match="cannot act"):
        await agency.agent(model="extractive")
    with pytest.raises(NotFound):
        await agency.agent(spaces=["nowhere"])
    agent = await agency.agent()
    with pytest.raises(Conflict, match="There is an agent called"):
        await agency.agent(name=agent.name)
