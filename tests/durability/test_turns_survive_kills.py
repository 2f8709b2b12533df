"""AgentTurn, killed at its boundaries, in the middle of text and while it waits: each call made once, no word lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.durability.conftest import CHAT_MODEL, ChatServer
from tests.durability.conversation import (
    SPACE,
    decide,
    facts_of,
    make_session,
    make_space,
    pending_approval,
    perhaps,
    say,
    wait_for_all_runs,
)
from tests.durability.event_follower import EventFollower
from tests.durability.kill_chain import both_sides, die_at
from tests.durability.proofs import prove_audited, prove_one_end
from tests.running.processes import PerdureProcess, wait_until

TOOLS = ["list_documents", "write_document"]
EVERYWHERE = [
    *both_sides("next_turn", "think", "call", "finish_turn", "look_at_approval"),
    "think.mid_stream:3",
    "call.begun",
    "call.made",
]


def call(name: str, **arguments: Any) -> dict[str, str]:
    return {"name": name, "arguments": json.dumps(arguments)}


def writes(name: str) -> dict[str, str]:
    text = f"# {name}\n\nWritten once about {name}.\n"
    return call("write_document", space=SPACE, external_id=f"{name}.md", title=name, text=text)


def replies(*names: str) -> list[dict[str, Any]]:
    """A look, two documents one after the other, and a last word, each slow enough to be cut in the middle."""
    first, second = names
    return [
        {"text": "I look at what there is.", "calls": [call("list_documents", space=SPACE)], "delay_s": 0.05},
        {"text": "I write the first.", "calls": [writes(first)], "delay_s": 0.02},
        {"text": "And the second.", "calls": [writes(second)], "delay_s": 0.02},
        {"text": " ".join(["Both are written."] * 8), "delay_s": 0.05},
    ]


@pytest.fixture(scope="module")
def agency(perdure: PerdureProcess) -> PerdureProcess:
    """A Perdure with a space to write to, stopped."""
    perdure.start()
    make_space(perdure)
    perdure.stop()
    return perdure


def armed(agency: PerdureProcess, failpoint: str, act: Callable[[], object] | None = None) -> None:
    """Starts it, does something when it is ready, and waits until the failpoint has ended it."""
    if act is None:
        agency.launch(PERDURE_FAILPOINTS=failpoint)
    else:
        agency.start(PERDURE_FAILPOINTS=failpoint)
        perhaps(act)
    die_at(agency, failpoint)


def prove_turned(agency: PerdureProcess, run_id: str, documents: list[str], *followers: EventFollower) -> None:
    for follower in followers:
        follower.wait()
    wait_for_all_runs(agency)
    prove_one_end(agency, run_id)
    told = facts_of(agency).run_events(run_id)
    (final,) = [event["data"]["text"] for event in told if event["type"] == "answer.text"]
    made = [event["data"]["call_id"] for event in told if event["type"] == "tool.call"]
    came = [event["data"]["call_id"] for event in told if event["type"] == "tool.result"]
    assert len(set(made)) == len(made) == 3
    assert sorted(came) == sorted(made), "one result for each call"
    assert all(event["data"]["ok"] for event in told if event["type"] == "tool.result")
    assert final.count("Both are written.") == 8
    with agency.client() as client:
        found = client.get("/documents", params={"space": SPACE}).json()["items"]
    for name in documents:
        assert [each["version"] for each in found if each["external_id"] == f"{name}.md"] == [1], "written once"
    for follower in followers:
        follower.assert_whole()
        assert follower.text == final


@pytest.mark.timeout(1800)
def test_a_turn_killed_all_along_makes_each_call_once_and_loses_no_word(
    agency: PerdureProcess, chat_server: ChatServer
) -> None:
    chat_server.plan("tour", *replies("heron", "plover"))
    agency.start(PERDURE_FAILPOINTS="think.mid_stream:3")
    session = make_session(agency, tools=TOOLS, mode="ask", model=CHAT_MODEL)
    run_id = say(agency, session, "[[tour]] Write them.")
    followers = [EventFollower(agency, run_id), EventFollower(agency, run_id, cut_after=3)]
    die_at(agency, "think.mid_stream:3")
    armed(agency, "call.begun")
    armed(agency, "look_at_approval.after")
    armed(
        agency,
        "call.made",
        lambda: decide(agency, pending_approval(agency, run_id)["id"], decision="approve_session"),
    )
    armed(agency, "call.after")
    armed(agency, "think.mid_stream:20")
    armed(agency, "finish_turn.after")
    agency.start()
    prove_turned(agency, run_id, ["heron", "plover"], *followers)
    resets = [event for event in followers[0].events if event.type == "answer.reset"]
    assert len(resets) == 2, "one for each attempt that had shown text"
    late = EventFollower(agency, run_id, cut_after=1)
    prove_turned(agency, run_id, ["heron", "plover"], late)
    prove_audited(agency)


@pytest.mark.timeout(600)
def test_a_steer_is_not_lost_when_the_turn_is_killed_while_it_ends(
    agency: PerdureProcess, chat_server: ChatServer
) -> None:
    chat_server.plan("short", {"text": "Done so far. " * 20, "delay_s": 0.05}, {"text": "And what you added."})
    if agency.running:
        agency.kill()
    agency.start(PERDURE_FAILPOINTS="finish_turn.before")
    session = make_session(agency, tools=[], model=CHAT_MODEL)
    run_id = say(agency, session, "[[short]] Begin.")
    facts = facts_of(agency)
    wait_until(lambda: [event for event in facts.run_events(run_id) if event["type"] == "token"])
    assert say(agency, session, "Add this.", mode="steer") == run_id
    die_at(agency, "finish_turn.before")
    agency.start()
    follower = EventFollower(agency, run_id)
    follower.wait()
    wait_for_all_runs(agency)
    with agency.client() as client:
        messages = client.get(f"/sessions/{session}/messages").json()["items"]
    assert [message["role"] for message in messages] == ["user", "user", "assistant"]
    assert all(message["read_at"] for message in messages)
    assert follower.text.endswith("And what you added. ")


@pytest.mark.timeout(600)
def test_a_stop_survives_a_kill_and_keeps_what_the_turn_had_said(
    agency: PerdureProcess, chat_server: ChatServer
) -> None:
    chat_server.plan("endless", {"text": "word " * 2_000, "delay_s": 0.05})
    if agency.running:
        agency.kill()
    agency.start()
    session = make_session(agency, tools=[], model=CHAT_MODEL)
    run_id = say(agency, session, "[[endless]] Talk.")
    facts = facts_of(agency)
    wait_until(lambda: [event for event in facts.run_events(run_id) if event["type"] == "token"])
    with agency.client() as client:
        client.post(f"/runs/{run_id}/cancel").raise_for_status()
    agency.kill()
    agency.start()
    EventFollower(agency, run_id).wait()
    assert facts_of(agency).run(run_id)["state"] == "cancelled"
    with agency.client() as client:
        (_, reply) = client.get(f"/sessions/{session}/messages").json()["items"]
    assert reply["text"].startswith("word word"), "what was said is kept"


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("failpoint", EVERYWHERE)
def test_a_turn_killed_twice_at_one_boundary_is_told_whole(
    agency: PerdureProcess, chat_server: ChatServer, failpoint: str
) -> None:
    if agency.running:
        agency.kill()
    names = [f"{failpoint.replace('.', '-').replace(':', '-')}-{word}" for word in ("one", "two")]
    chat_server.plan("twice", *replies(*names))
    agency.start(PERDURE_FAILPOINTS=failpoint)
    session = make_session(agency, tools=TOOLS, mode="auto", always_ask=["write_document"], model=CHAT_MODEL)
    run_id = say(agency, session, "[[twice]] Write them.", message_id=failpoint)

    def approve() -> None:
        decide(agency, pending_approval(agency, run_id, 5)["id"], decision="approve_session")

    for _ in range(2):
        if failpoint.startswith(("call.", "finish_turn")):
            perhaps(approve)
        die_at(agency, failpoint)
        agency.start(PERDURE_FAILPOINTS=failpoint)
    agency.kill()
    agency.start()
    if not facts_of(agency).run(run_id)["ended_at"]:
        perhaps(approve)
    prove_turned(agency, run_id, names, EventFollower(agency, run_id))
