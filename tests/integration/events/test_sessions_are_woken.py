"""Sessions are woken by outbox rows, and by the reconciler when Temporal has forgotten them; turns are theirs to start."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from temporalio.client import Client

from schemas.access import Actor
from schemas.agents import AgentDraft
from schemas.conversations import MessageDraft, SessionDraft
from schemas.identifiers import new_id
from schemas.settings import AgentSettings, WorkSettings
from schemas.workflow_contracts import ASK_APPROVAL
from services.agents.sessions import Sessions
from services.events.delivery import OutboxDelivery
from services.events.reconciler import Reconciler
from services.gateways.temporal_gateway import TemporalGateway
from services.stores import agents_store, approvals_store, runs_store
from services.stores.database import Database
from services.stores.runs_store import TEMPORAL
from tests.integration.events import facts, runs
from tests.integration.events.facts import TENANT
from tests.integration.events.test_temporal_delivery import NoKafka, waiting_for_temporal

ACTOR = Actor(tenant=TENANT, user="ann")


async def said(database: Database, text: str = "Hello.") -> tuple[str, str]:
    """A session with a message that waits for its turn; the relay has not seen it. Gives the session and the run."""

    async def left_to_the_relay(destination: str, stream: str) -> None:
        return None

    sessions = Sessions(database, left_to_the_relay, AgentSettings(), lambda: None)
    async with database.begin(TENANT) as transaction:
        agent = await agents_store.create(transaction, new_id(), ACTOR.user, AgentDraft(name=f"agent {new_id()}"))
    session = await sessions.create(ACTOR, SessionDraft(agent_id=agent.id))
    accepted = await sessions.send(ACTOR, session.id, MessageDraft(text=text))
    return session.id, accepted.run_id


async def starts(temporal: Client, workflow_id: str) -> list[str]:
    """The kinds of the first events of a workflow: its start, and the signals that woke it."""
    history = await temporal.get_workflow_handle(workflow_id).fetch_history()
    return [event.WhichOneof("attributes") or "" for event in history.events]


async def test_a_message_starts_its_session_and_another_one_wakes_the_same(
    database: Database, gateway: TemporalGateway, temporal: Client
) -> None:
    session_id, _ = await said(database)
    delivery = OutboxDelivery(database, gateway, NoKafka())
    await delivery.deliver_head(TEMPORAL, f"session:{session_id}")
    first = await gateway.describe(f"session:{TENANT}:{session_id}")
    assert first is not None
    await gateway.wake_session(TENANT, session_id, ACTOR.user)
    again = await gateway.describe(f"session:{TENANT}:{session_id}")
    assert again is not None
    assert again.execution_id == first.execution_id
    events = await starts(temporal, f"session:{TENANT}:{session_id}")
    assert events.count("workflow_execution_started_event_attributes") == 1
    assert events.count("workflow_execution_signaled_event_attributes") == 2
    assert await waiting_for_temporal(database) == 0


async def test_a_turn_is_not_started_by_the_outbox_but_by_its_session(
    database: Database, gateway: TemporalGateway
) -> None:
    _, run_id = await said(database)
    await OutboxDelivery(database, gateway, NoKafka()).deliver_batch(TEMPORAL)
    assert await gateway.describe(f"turn:{TENANT}:{run_id}") is None


async def test_a_turn_whose_temporal_is_gone_is_given_back_to_its_session(
    database: Database, gateway: TemporalGateway
) -> None:
    session_id, run_id = await said(database)
    await facts.rows(database, "UPDATE outbox SET delivered_at = now() RETURNING id")  # in a Temporal that is gone
    async with database.begin(TENANT) as transaction:
        assert await runs_store.claim(transaction, run_id, "an-execution-nobody-knows") is not None
    await runs.let_stall(database, run_id)
    assert await Reconciler(database, gateway, WorkSettings()).reconcile() == {"left": 1}
    row = await runs.run(database, run_id)
    assert (row["state"], row["execution_id"]) == ("queued", None), "its session's next execution may claim it"
    await OutboxDelivery(database, gateway, NoKafka()).deliver_batch(TEMPORAL)
    assert await gateway.describe(f"session:{TENANT}:{session_id}") is not None
    assert await gateway.describe(f"turn:{TENANT}:{run_id}") is None


async def test_a_message_that_waits_behind_another_is_looked_at_without_new_facts(
    database: Database, gateway: TemporalGateway
) -> None:
    _, run_id = await said(database)
    await OutboxDelivery(database, gateway, NoKafka()).deliver_batch(TEMPORAL)
    await runs.let_stall(database, run_id)
    before = await facts.rows(database, "SELECT count(*) AS count FROM domain_events")
    assert await Reconciler(database, gateway, WorkSettings()).reconcile() == {"left": 1}
    assert await facts.rows(database, "SELECT count(*) AS count FROM domain_events") == before


async def test_a_request_whose_decision_its_workflow_has_not_seen_is_signalled_until_it_acknowledges(
    database: Database, gateway: TemporalGateway
) -> None:
    _, turn = await said(database)
    run_id, approval_id, now = new_id(), new_id(), datetime.now(UTC)
    request = approvals_store.Request(
        run_id=turn, own_run_id=run_id, session_id=None, step="call:1.0", user_id=ACTOR.user, tool="ring", risk="write",
        args_hash="hash", approver_roles=[], space_id=None, expires_at=now + timedelta(days=7),
    )  # fmt: skip
    async with database.begin(TENANT) as transaction:
        await runs_store.create(
            transaction,
            ASK_APPROVAL,
            run_id=run_id,
            workflow_id=f"approval:{TENANT}:{approval_id}",
            actor=ACTOR,
            input_ref={"approval_id": approval_id, "expires_at": request.expires_at.isoformat(), "tool": "ring"},
            subject=approval_id,
        )
        await approvals_store.ask(transaction, approval_id, request, approvals_store.Words({}))
    await OutboxDelivery(database, gateway, NoKafka()).deliver_batch(TEMPORAL)
    view = await gateway.describe(f"approval:{TENANT}:{approval_id}")
    assert view is not None
    async with database.begin(TENANT) as transaction:
        assert await runs_store.claim(transaction, run_id, view.execution_id) is not None
        row = await approvals_store.get(transaction, approval_id, for_update=True)
        assert row is not None
        await approvals_store.decide(
            transaction,
            row,
            state="approved",
            decision="approve",
            by="bea",
            args_hash="hash",
            edited=None,
            feedback=None,
        )
    await facts.rows(database, "UPDATE outbox SET delivered_at = now() RETURNING id")  # the signal was lost
    await runs.let_stall(database, run_id)
    reconciler = Reconciler(database, gateway, WorkSettings())
    assert await reconciler.reconcile() == {"signalled": 1}
    async with database.begin(TENANT) as transaction:
        await approvals_store.acknowledge(transaction, approval_id)
    assert await reconciler.reconcile() == {"alive": 1}
