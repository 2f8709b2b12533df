"""AnswerQuestion, killed at every boundary and while it streams: what a client has put together equals the answer."""

from __future__ import annotations

import pytest

from tests.durability.conftest import CHAT_MODEL, ChatServer
from tests.durability.conversation import (
    ask,
    facts_of,
    make_space,
    perhaps,
    upload,
    wait_for_all_runs,
    wait_for_state,
)
from tests.durability.event_follower import EventFollower
from tests.durability.kill_chain import both_sides, kill_along
from tests.durability.material import short_text
from tests.durability.proofs import prove_audited, prove_one_end
from tests.running.processes import PerdureProcess

MID_STREAM = "generate.mid_stream:12"
"""At the twelfth word: several rows of deltas have been written by then."""
BEFORE_A_WORD = ["start.before_outbox_mark", "retrieve.after"]
WITH_WORDS = ["generate.before", MID_STREAM, MID_STREAM, "generate.after", "finish_answer.after"]
EVERYWHERE = [BEFORE_A_WORD[0], *both_sides("retrieve", "generate", "finish_answer"), MID_STREAM]
QUESTION = "What is the daily limit of Marabou?"


def drafts(*words: str) -> list[dict[str, object]]:
    """One reply per attempt, each with words of its own, slow enough to be cut in the middle."""
    told = " ".join(["The daily limit of Marabou is 100 orders [1]."] * 3)
    return [{"text": f"Draft {word}: {told}", "delay_s": 0.06} for word in words]


@pytest.fixture(scope="module")
def library(perdure: PerdureProcess) -> PerdureProcess:
    """A Perdure with one document to answer from, stopped."""
    perdure.start()
    make_space(perdure)
    document_id = upload(perdure, "marabou.md", short_text("Marabou"))["document_id"]
    wait_for_state(perdure, document_id, "ready")
    perdure.stop()
    return perdure


def prove_answered(library: PerdureProcess, run_id: str, *followers: EventFollower) -> None:
    for follower in followers:
        follower.wait()
    wait_for_all_runs(library)
    prove_one_end(library, run_id)
    told = facts_of(library).run_events(run_id)
    final = [event["data"]["text"] for event in told if event["type"] == "answer.text"]
    assert len(final) == 1, "answer.text comes once"
    answer_id = facts_of(library).run(run_id)["subject"]
    with library.client() as client:
        answer = client.get(f"/answers/{answer_id}").json()
    assert (answer["state"], answer["answer"], answer["answered"]) == ("succeeded", final[0], True)
    assert [citation["n"] for citation in answer["citations"]]
    for follower in followers:
        follower.assert_whole()
        assert follower.text == final[0]
        assert [(e.seq, e.type) for e in follower.events] == [(e["seq"], e["type"]) for e in told]


@pytest.mark.timeout(1800)
def test_a_client_that_follows_over_all_kills_has_the_answer(library: PerdureProcess, chat_server: ChatServer) -> None:
    chat_server.script(*drafts("one"))
    library.start(PERDURE_FAILPOINTS=BEFORE_A_WORD[0])
    perhaps(ask, library, QUESTION, CHAT_MODEL, "once")
    kill_along(library, BEFORE_A_WORD)
    run_id = facts_of(library).newest_run("answer")
    assert ask(library, QUESTION, CHAT_MODEL, "once")["run_id"] == run_id, "who got no reply may ask again"
    prove_answered(library, run_id, EventFollower(library, run_id))

    library.kill()
    library.start(PERDURE_FAILPOINTS=WITH_WORDS[0])
    chat_server.script(*drafts("two", "three", "four"))
    run_id = ask(library, QUESTION, CHAT_MODEL)["run_id"]
    followers = [EventFollower(library, run_id), EventFollower(library, run_id, cut_after=2)]
    kill_along(library, WITH_WORDS)
    prove_answered(library, run_id, *followers)
    resets = [event for event in followers[0].events if event.type == "answer.reset"]
    assert len(resets) == 2, "one for each attempt that had shown text"
    late = EventFollower(library, run_id, cut_after=1)
    prove_answered(library, run_id, late)
    prove_audited(library)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("failpoint", EVERYWHERE)
def test_an_answer_killed_twice_at_one_boundary_is_told_whole(
    library: PerdureProcess, chat_server: ChatServer, failpoint: str
) -> None:
    if library.running:
        library.kill()
    chat_server.script(*drafts("one", "two", "three"))
    library.start(PERDURE_FAILPOINTS=failpoint)
    started = perhaps(ask, library, QUESTION, CHAT_MODEL)
    followers = [EventFollower(library, started["run_id"], cut_after=3)] if started else []
    kill_along(library, [failpoint, failpoint])
    run_id = facts_of(library).newest_run("answer")
    prove_answered(library, run_id, EventFollower(library, run_id), *followers)
