"""Requests for approval: what is asked, what was decided, and that nothing else ever runs."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from schemas.approvals import ApprovalView, Decision
from schemas.errors import Conflict, InvalidRequest, NotFound
from schemas.tools import CallPlan
from services.agents.turn_reading import TurnWork
from services.events import rebuild
from services.stores import document_views
from services.stores.tables.agents import approvals as approvals_table
from tests.fakes.openai_server import Reply
from tests.integration.agents.agency import Agency, calls

pytestmark = pytest.mark.asyncio(loop_scope="session")
OLD, NEW = "# Travel\n\nThe limit is 2,000 euro.", "# Travel\n\nThe limit is 3,000 euro."
ASK = "[[plan]] Raise the limit."


def write(space: str, text: str = NEW) -> dict[str, str]:
    return calls("write_document", space=space, external_id="travel.md", title="Travel", text=text)


async def handbook(agency: Agency, **fields: Any) -> tuple[str, str, str]:
    """Space, document, and a session with an agent that would change it."""
    space = await agency.world.space(agency.world.root)
    document = await agency.world.ingest(agency.world.root, space, "travel.md", OLD)
    agency.plan(Reply(text="I change it.", calls=[write(space)]), Reply(text="That is that."))
    return space, document.id, await agency.session(**fields)


async def text_of(agency: Agency, document_id: str) -> str:
    await agency.world.work.everything(agency.world.root.actor.tenant)
    return await agency.world.text(await agency.world.document(agency.world.root, document_id))


async def test_a_request_shows_what_would_change_and_its_approval_changes_just_that(agency: Agency) -> None:
    _, document, session = await handbook(agency)
    seen: list[ApprovalView] = []

    async def decide(request: ApprovalView) -> None:
        seen.append(request)
        assert await text_of(agency, document) == OLD, "nothing has happened yet"
        await agency.decision("approve")(request)

    run = await agency.ask(session, ASK, decide)
    assert run["state"] == "succeeded"
    (request,) = seen
    assert (request.tool, request.risk, request.state, request.reason) == (
        "write_document",
        "write",
        "pending",
        "I change it.",
    )
    assert "-The limit is 2,000 euro." in (request.preview or "")
    assert "+The limit is 3,000 euro." in (request.preview or "")
    assert await text_of(agency, document) == NEW
    versions = (await agency.world.document(agency.world.root, document)).version
    assert versions == 2
    types = [event.type for event in await agency.events(run["id"])]
    assert types.index("approval.requested") < types.index("run.waiting") < types.index("approval.decided")
    (result,) = [event.data for event in await agency.events(run["id"], "tool.result")]
    assert (result["ok"], result["effect"]) == (True, "done")


async def test_edited_arguments_are_what_runs(agency: Agency) -> None:
    space, document, session = await handbook(agency)
    edited = {
        "space": space,
        "external_id": "travel.md",
        "title": "Travel",
        "text": "# Travel\n\nThe limit is 2,500 euro.",
    }
    await agency.ask(session, ASK, agency.decision("approve", arguments=edited))
    assert await text_of(agency, document) == edited["text"]


async def test_edited_arguments_that_do_not_fit_the_tool_are_refused_and_the_request_stays_open(agency: Agency) -> None:
    _, document, session = await handbook(agency)

    async def decide(request: ApprovalView) -> None:
        with pytest.raises(InvalidRequest, match="do not fit the tool"):
            await agency.decision("approve", arguments={"text": 7})(request)
        await agency.decision("reject")(request)

    await agency.ask(session, ASK, decide)
    assert await text_of(agency, document) == OLD


async def test_a_rejection_changes_nothing_and_its_words_go_to_the_model(agency: Agency) -> None:
    _, document, session = await handbook(agency)
    run = await agency.ask(session, ASK, agency.decision("reject", feedback="Ask Pernilla first."))
    assert run["state"] == "succeeded"
    assert "Ask Pernilla first." in agency.shown_text()
    assert await text_of(agency, document) == OLD


async def test_a_request_that_nobody_decides_expires_and_ends_the_call_not_the_turn(agency: Agency) -> None:
    _, document, session = await handbook(agency)
    run = await agency.ask(session, ASK)
    assert run["state"] == "succeeded"
    assert "expired" in agency.shown_text()
    assert await text_of(agency, document) == OLD
    (request,) = await agency.approvals.newest(agency.world.root.actor, "expired", None, 10)
    with pytest.raises(Conflict, match="over: expired") as late:
        await agency.decision("approve")(request)
    assert (late.value.type, late.value.extra["state"]) == ("approval_over", "expired")


async def test_a_turn_waits_until_the_last_of_its_requests_is_over(agency: Agency) -> None:
    agency.plan(Reply(calls=[calls("ring_bell", times=1), calls("ring_bell", times=2)]), Reply(text="Rung."))
    session = await agency.session()
    work = TurnWork(agency.world.root.actor.tenant, await agency.say(session, ASK), session)
    await agency.begin(work)
    first, second = (await agency.thinking.run(work, 1, "attempt-1")).calls
    approve, states = agency.decision("approve"), []
    for call in (first, second):
        states.append((await agency.run(work.run_id))["state"])
        await agency.call(work, call, approve)
    states.append((await agency.run(work.run_id))["state"])
    assert states == ["waiting", "waiting", "running"]


async def test_the_same_decision_twice_has_the_same_outcome_and_another_one_is_told_what_stands(agency: Agency) -> None:
    _, document, session = await handbook(agency)

    async def decide(request: ApprovalView) -> None:
        actor = agency.world.root.actor
        first = await agency.approvals.decide(actor, request.id, Decision(decision="approve"))
        again = await agency.approvals.decide(actor, request.id, Decision(decision="approve"))
        assert (first.outcome, again.outcome) == ("recorded", "already_recorded")
        for other in (Decision(decision="reject"), Decision(decision="approve", arguments={"text": "x"})):
            with pytest.raises(Conflict) as caught:
                await agency.approvals.decide(actor, request.id, other)
            assert caught.value.type == "decided_otherwise"
            assert caught.value.extra["state"] == "approved"

    await agency.ask(session, ASK, decide)
    assert await text_of(agency, document) == NEW
    assert (await agency.world.document(agency.world.root, document)).version == 2


async def test_a_decision_after_its_time_is_too_late_even_when_nothing_has_recorded_the_expiry(agency: Agency) -> None:
    _, document, session = await handbook(agency)

    async def decide(request: ApprovalView) -> None:
        async with agency.world.database.begin(agency.world.root.actor.tenant) as transaction:
            past = transaction.now - timedelta(seconds=1)
            await transaction.execute(
                update(approvals_table).where(approvals_table.c.id == request.id).values(expires_at=past)
            )
        with pytest.raises(Conflict, match="over: expired"):
            await agency.decision("approve")(request)
        await agency.waiting.look(agency.world.root.actor.tenant, await own_run(agency, request), request.id, "expired")

    await agency.ask(session, ASK, decide)
    assert await text_of(agency, document) == OLD


async def own_run(agency: Agency, request: ApprovalView) -> str:
    async with agency.world.database.begin(agency.world.root.actor.tenant) as transaction:
        row = await transaction.one_or_none(approvals_table.select().where(approvals_table.c.id == request.id))
    assert row is not None
    return str(row["own_run_id"])


async def test_rights_lost_between_approval_and_call_stop_the_call(agency: Agency) -> None:
    writer = await agency.world.person()
    space = await agency.world.space(agency.world.root, contributors=[writer])
    document = await agency.world.ingest(agency.world.root, space, "travel.md", OLD)
    agency.plan(Reply(calls=[write(space)]), Reply(text="It was refused."))
    session = await agency.session(writer)

    async def decide(request: ApprovalView) -> None:
        await agency.decision("approve", writer)(request)
        await agency.world.grant(agency.world.root, space, f"user:{writer.id}", "viewer")

    agency.shown_to = writer
    await agency.ask(session, ASK, decide, who=writer)
    assert "needs the role" in agency.shown_text()
    assert await text_of(agency, document.id) == OLD


async def test_what_was_approved_for_the_session_is_not_asked_again_and_nothing_else_is_spared(agency: Agency) -> None:
    space, document, session = await handbook(agency, tools=["write_document", "ring_bell"])
    await agency.ask(session, ASK, agency.decision("approve_session"))
    agency.plan(
        Reply(calls=[write(space, "# Travel\n\nThe limit is 4,000 euro."), calls("ring_bell")]), Reply(text="Done.")
    )
    asked: list[str] = []

    async def decide(request: ApprovalView) -> None:
        asked.append(request.tool)
        await agency.decision("reject")(request)

    await agency.ask(session, ASK, decide)
    assert asked == ["ring_bell"]
    assert "4,000" in await text_of(agency, document)
    assert agency.bell.heard == []


@pytest.mark.parametrize(
    ("mode", "always_ask", "writes", "rings"),
    [
        ("read_only", [], "denied", "denied"),
        ("ask", [], "asked", "asked"),
        ("auto", [], "done", "asked"),
        ("auto", ["write_document"], "asked", "asked"),
        ("read_only", ["write_document"], "denied", "denied"),
    ],
)
async def test_the_mode_decides_what_runs_what_is_asked_and_what_is_denied(
    agency: Agency, mode: str, always_ask: list[str], writes: str, rings: str
) -> None:
    space, document, session = await handbook(agency, mode=mode, always_ask=always_ask)
    agency.plan(Reply(calls=[write(space), calls("ring_bell")]), Reply(text="Done."))
    asked: list[str] = []

    async def decide(request: ApprovalView) -> None:
        asked.append(request.tool)
        await agency.decision("reject")(request)

    await agency.ask(session, ASK, decide)
    expected = [tool for tool, outcome in (("write_document", writes), ("ring_bell", rings)) if outcome == "asked"]
    assert asked == expected
    assert ("3,000" in await text_of(agency, document)) == (writes == "done")
    assert agency.shown_text().count("Denied: in mode") == [writes, rings].count("denied")


async def test_nobody_is_asked_about_a_call_that_could_not_run(agency: Agency) -> None:
    agency.plan(Reply(calls=[write("nowhere")]), Reply(text="So be it."))
    run = await agency.ask(await agency.session(), ASK)
    assert run["state"] == "succeeded"
    assert await agency.approvals.newest(agency.world.root.actor, None, None, 10) == []
    assert "no space 'nowhere'" in agency.shown_text()


async def test_a_request_is_seen_and_decided_by_whom_the_agent_acts_for_and_by_the_roles_it_names(
    agency: Agency,
) -> None:
    world = agency.world
    manager, member, stranger = await world.person(), await world.person(), await world.person()
    space = await world.space(manager, contributors=[member])
    agency.plan(Reply(calls=[write(space)]), Reply(text="Done."))
    session = await agency.session(member, approver_roles=["manager"])
    run_id = await agency.say(session, ASK, member)
    work = await started(agency, session, run_id)
    (call,) = (await agency.thinking.run(work, 1, "attempt")).calls
    assert call.approval_id is not None
    assert await agency.approvals.newest(stranger.actor, None, None, 10) == []
    with pytest.raises(NotFound):
        await agency.approvals.decide(stranger.actor, call.approval_id, Decision(decision="approve"))
    for decider in (member, manager):
        assert [each.id for each in await agency.approvals.newest(decider.actor, "pending", None, 10)] == [
            call.approval_id
        ]
    await agency.approvals.decide(manager.actor, call.approval_id, Decision(decision="approve"))
    (decided,) = await agency.approvals.newest(member.actor, None, None, 10)
    assert (decided.state, decided.decided_by) == ("approved", f"user:{manager.id}")


async def started(agency: Agency, session: str, run_id: str) -> TurnWork:
    work = TurnWork(agency.world.root.actor.tenant, run_id, session)
    await agency.begin(work)
    return work


async def cut_off(agency: Agency, session: str) -> tuple[TurnWork, CallPlan]:
    """A turn whose bell was rung by an attempt that never told what came of it."""
    agency.plan(Reply(calls=[calls("ring_bell", times=1)]), Reply(text="I do not know whether it rang."))
    work = await started(agency, session, await agency.say(session, ASK))
    (call,) = (await agency.thinking.run(work, 1, "attempt-1")).calls
    agency.bell.breaks = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        await agency.call(work, call, agency.decision("approve"))
    agency.bell.breaks = None
    await agency.calling.run(work, call.step, call.approval_id)
    return work, call


async def test_a_call_with_an_effect_that_was_cut_off_is_unknown_and_never_made_twice(agency: Agency) -> None:
    work, call = await cut_off(agency, await agency.session())
    await agency.calling.run(work, call.step, call.approval_id)
    assert len(agency.bell.heard) == 1
    (result,) = [event.data for event in await agency.events(work.run_id, "tool.result")]
    assert (result["ok"], result["effect"]) == (False, "unknown")
    (unknown,) = await agency.approvals.newest(agency.world.root.actor, "unknown_effect", None, 10)
    assert (unknown.tool, unknown.arguments, unknown.run_id) == ("ring_bell", {"times": 1}, work.run_id)


async def test_a_person_marks_an_unknown_effect_as_done_once(agency: Agency) -> None:
    await cut_off(agency, await agency.session())
    (unknown,) = await agency.approvals.newest(agency.world.root.actor, "unknown_effect", None, 10)
    with pytest.raises(Conflict, match="mark_done or try_again"):
        await agency.decision("approve")(unknown)
    await agency.decision("mark_done")(unknown)
    with pytest.raises(Conflict):
        await agency.decision("try_again")(unknown)
    assert (await agency.approvals.get(agency.world.root.actor, unknown.id)).state == "approved"
    assert len(agency.bell.heard) == 1


async def test_an_unknown_effect_is_tried_again_by_a_run_of_its_own_and_asks_no_model(agency: Agency) -> None:
    work, _ = await cut_off(agency, await agency.session())
    (unknown,) = await agency.approvals.newest(agency.world.root.actor, "unknown_effect", None, 10)
    asked = len(agency.server.received)
    decided = await agency.approvals.decide(agency.world.root.actor, unknown.id, Decision(decision="try_again"))
    assert decided.run_id not in (None, work.run_id)
    await agency.turn(TurnWork(work.tenant, str(decided.run_id)))
    assert [len(agency.bell.heard), len(agency.server.received)] == [2, asked]
    run = await agency.run(str(decided.run_id))
    assert (run["state"], run["parent_id"]) == ("succeeded", work.run_id)
    assert [event.data["text"] for event in await agency.events(run["id"], "answer.text")] == ["It rang."]


async def test_an_outcome_that_comes_late_replaces_the_unknown_one_and_closes_its_request(agency: Agency) -> None:
    session = await agency.session()
    work = await started(agency, session, await agency.say(session, ASK))
    agency.plan(Reply(calls=[calls("ring_bell", times=1)]), Reply(text="It rang."))
    (call,) = (await agency.thinking.run(work, 1, "attempt-1")).calls
    assert call.approval_id is not None
    await agency.decision("approve")(await agency.approvals.get(agency.world.root.actor, call.approval_id))
    agency.bell.waits = asyncio.Event()
    slow = asyncio.create_task(agency.calling.run(work, call.step, call.approval_id))
    await agency.bell.begun.wait()
    await agency.calling.run(work, call.step, call.approval_id)
    assert [each.tool for each in await agency.approvals.newest(agency.world.root.actor, "unknown_effect", None, 10)]
    agency.bell.waits.set()
    await slow
    assert await agency.approvals.newest(agency.world.root.actor, "unknown_effect", None, 10) == []
    await agency.thinking.run(work, 2, "attempt-2")
    assert [message["content"] for message in agency.shown() if message["role"] == "tool"] == ["It rang."]
    assert len(agency.bell.heard) == 1


async def test_two_attempts_of_one_call_leave_one_outcome_and_one_event(agency: Agency) -> None:
    session = await agency.session()
    space = await agency.world.space(agency.world.root)
    agency.plan(Reply(calls=[write(space)]), Reply(text="Done."))
    work = await started(agency, session, await agency.say(session, ASK))
    (call,) = (await agency.thinking.run(work, 1, "attempt-1")).calls
    assert call.approval_id is not None
    await agency.decision("approve")(await agency.approvals.get(agency.world.root.actor, call.approval_id))
    await asyncio.gather(*(agency.calling.run(work, call.step, call.approval_id) for _ in range(4)))
    assert len(await agency.events(work.run_id, "tool.result")) == 1
    async with agency.world.database.begin(work.tenant) as transaction:
        (document,) = await document_views.newest_first(
            transaction, agency.world.root.actor, space_id=space, state=None, tag=None, before=None, limit=10
        )
    assert document.version == 1


async def test_requests_and_decisions_are_rebuilt_from_their_events(agency: Agency) -> None:
    _, _, session = await handbook(agency)
    await agency.ask(session, ASK, agency.decision("approve"))
    agency.plan(Reply(calls=[calls("ring_bell")]), Reply(text="Done."))
    await agency.ask(session, ASK)
    before = await rows(agency)
    await rebuild.rebuild_read_models(agency.world.database)
    assert await rows(agency) == before
    assert {row["state"] for row in before} == {"approved", "expired"}


async def rows(agency: Agency) -> list[dict[str, Any]]:
    async with agency.world.database.begin(agency.world.root.actor.tenant) as transaction:
        found = await transaction.all(approvals_table.select().order_by(approvals_table.c.id))
    return [{name: value for name, value in row.items() if name != "acknowledged_at"} for row in found]
