"""Questions to people, and work delegated to sub-agents: a brief and a slice, and nothing wider than the parent's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services.agents.turn_reading import TurnWork
from tests.fakes.openai_server import Reply
from tests.integration.agents.agency import Agency, build_agency, calls
from tests.world.builders import World

pytestmark = pytest.mark.asyncio(loop_scope="session")
ASK = "[[plan]] Find out."


def delegate(**fields: Any) -> dict[str, str]:
    brief = {"goal": "[[below]] Read the policy.", "inputs": "", "done_when": "You know the limit.", "tools": []}
    return calls("delegate", **{**brief, **fields})


async def test_an_answer_of_the_person_comes_back_to_the_model_in_every_mode(agency: Agency) -> None:
    agency.plan(Reply(calls=[calls("ask_user", question="Which year?")]), Reply(text="1997 it is."))
    session = await agency.session(mode="read_only")
    run = await agency.ask(session, ASK, agency.decision("approve", feedback="1997"))
    assert run["state"] == "succeeded"
    assert "They answered: 1997" in agency.shown_text()


async def test_work_that_is_delegated_comes_back_with_its_text_its_sources_and_what_it_cost(agency: Agency) -> None:
    space = await agency.world.space(agency.world.root)
    document = await agency.world.ingest(
        agency.world.root, space, "travel.md", "# Travel\n\nThe limit is 2,000 euro.\n"
    )
    agency.plan(
        Reply(text="I hand it on.", calls=[delegate(tools=["read_document"])]),
        Reply(text="The limit is 2,000 euro [1]."),
    )
    agency.server.plan(
        "below",
        Reply(calls=[calls("read_document", document_id=document.id)]),
        Reply(text="The limit is 2,000 euro [1]."),
    )
    session = await agency.session(spaces=[space])
    run = await agency.ask(session, ASK)
    assert run["state"] == "succeeded"
    (_, reply) = await agency.messages(session)
    assert [(citation.document_id, citation.quote) for citation in reply.citations] == [
        (document.id, "The limit is 2,000 euro.")
    ]
    (below,) = [row for row in await agency.children(run["id"]) if row["kind"] == "turn"]
    assert below["state"] == "succeeded"
    assert run["usage"]["output_tokens"] > below["usage"]["output_tokens"] > 0
    await agency.world.remove(agency.world.root, document.id)
    assert "2,000" not in await agency.world.everything_stored()


async def test_an_agent_below_is_told_its_brief_and_nothing_of_the_conversation(agency: Agency) -> None:
    agency.plan(Reply(calls=[delegate(inputs={"year": 1997})]), Reply(text="Done."))
    agency.server.plan("below", Reply(text="Nothing more."))
    session = await agency.session()
    await agency.ask(session, "My secret is heliotrope.")
    await agency.ask(session, ASK)
    below = next(
        request for request in agency.server.received if "[[below]]" in str(request.body["messages"][1]["content"])
    )
    text = json.dumps(below.body, ensure_ascii=False)
    assert "1997" in text
    assert "You know the limit." in text
    assert "heliotrope" not in text
    assert "tools" not in below.body, "it was given none"


@pytest.mark.parametrize(
    ("fields", "said"),
    [({"tools": ["ring_bell"]}, "is not one of yours"), ({"tools": ["fly"]}, "is not one of yours")],
)
async def test_tools_that_the_parent_has_not_cannot_be_delegated(
    agency: Agency, fields: dict[str, Any], said: str
) -> None:
    agency.plan(Reply(calls=[delegate(**fields)]), Reply(text="So be it."))
    run = await agency.ask(await agency.session(tools=["delegate"]), ASK)
    assert said in agency.shown_text()
    assert await agency.children(run["id"]) == []


async def test_depth_and_fan_out_have_bounds_that_are_named(world: World, agency: Agency) -> None:
    small = build_agency(world, agency.server, depth=1, fan_out=2)
    small.plan(
        Reply(calls=[delegate(tools=["delegate"])] + [delegate(goal=f"[[leaf]] {n}") for n in range(2)]),
        Reply(text="Done."),
    )
    small.server.plan("below", Reply(calls=[delegate(goal="[[leaf]] deeper")]), Reply(text="Too deep."))
    small.server.plan("leaf", Reply(text="Leaf."))
    run = await small.ask(await small.session(tools=["delegate"]), ASK)
    assert len(await small.children(run["id"])) == 2
    assert "PERDURE_AGENTS__FAN_OUT=2" in small.shown_text()
    asked = json.dumps([request.body for request in small.server.received])
    assert "PERDURE_AGENTS__DEPTH=1" in asked


async def test_agents_below_get_a_slice_of_what_their_parent_may_still_spend(agency: Agency) -> None:
    agency.plan(Reply(calls=[delegate(goal="[[below]] a"), delegate(goal="[[below]] b")]), Reply(text="Done."))
    agency.server.plan("below", Reply(text="Here."))
    run = await agency.ask(await agency.session(tools=["delegate"], limits={"tokens": 100_000, "cost": 1.0}), ASK)
    for child in await agency.children(run["id"]):
        config = await agency.config(child["id"])
        assert config["limits"]["tokens"] < 50_000
        assert config["limits"]["cost"] <= 0.5
        assert config["tools"] == []


async def test_a_turn_above_that_is_stopped_asks_those_below_to_stop(agency: Agency) -> None:
    agency.plan(Reply(calls=[delegate()]))
    session = await agency.session(tools=["delegate"])
    run_id = await agency.say(session, ASK)
    work = TurnWork(agency.world.root.actor.tenant, run_id, session)
    await agency.begin(work)
    (call,) = (await agency.thinking.run(work, 1, "attempt")).calls
    assert call.delegated
    await agency.ending.end(work, agency.ended("cancelled"))
    (child,) = await agency.children(run_id)
    assert child["cancel_requested_at"] is not None


async def test_what_is_asked_for_below_is_told_on_the_stream_of_the_turn_above(agency: Agency) -> None:
    agency.plan(Reply(calls=[delegate(tools=["ring_bell"])]), Reply(text="Done."))
    agency.server.plan("below", Reply(calls=[calls("ring_bell", times=2)]), Reply(text="It rang."))
    session = await agency.session(tools=["delegate", "ring_bell"])
    run = await agency.ask(session, ASK, agency.decision("approve", arguments={"times": 1}))
    assert run["state"] == "succeeded"
    (asked,) = await agency.events(run["id"], "approval.requested")
    (decided,) = await agency.events(run["id"], "approval.decided")
    assert (asked.data["tool"], decided.data["approval_id"]) == ("ring_bell", asked.data["approval_id"])
    request = await agency.approvals.get(agency.world.root.actor, asked.data["approval_id"])
    assert (request.arguments, request.decided_arguments) == ({"times": 2}, {"times": 1})
    assert agency.bell.heard == [{"times": 1}]
