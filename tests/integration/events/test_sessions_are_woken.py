"""Sessions are woken by outbox rows, and by the reconciler when Temporal has forgotten them; turns are theirs to start."""

from __future__ import annotations

from temporalio.client import Client

from schemas.access import Actor
from schemas.agents import AgentDraft
from schemas.conversations import MessageDraft, SessionDraft
from schemas.identifiers import new_id
from schemas.settings import AgentSettings, WorkSettings
from services.agents.sessions import Sessions
from services.events.delivery import OutboxDelivery
from services.events.reconciler import Reconciler
from services.gateways.temporal_gateway import TemporalGateway
from services.stores import agents_store, runs_store
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
