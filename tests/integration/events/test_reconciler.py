"""Runs that stand still are compared with what Temporal knows, and only what is lost is touched."""

from __future__ import annotations

import pytest
from temporalio.client import Client

from schemas.settings import WorkSettings
from services.events.delivery import OutboxDelivery
from services.events.reconciler import LEADER, Reconciler
from services.gateways.temporal_gateway import TemporalGateway
from services.stores import runs_store
from services.stores.database import Database
from services.stores.runs_store import TEMPORAL
from tests.integration.events import facts, runs
from tests.integration.events.facts import TENANT
from tests.integration.events.test_temporal_delivery import NoKafka

WORKFLOW = f"ingest:{TENANT}:d1:1"


@pytest.fixture
def delivery(database: Database, gateway: TemporalGateway) -> OutboxDelivery:
    return OutboxDelivery(database, gateway, NoKafka())


@pytest.fixture
def reconciler(database: Database, gateway: TemporalGateway) -> Reconciler:
    return Reconciler(database, gateway, WorkSettings())


async def claimed(database: Database, run_id: str, execution_id: str) -> None:
    async with database.begin(TENANT) as transaction:
        assert await runs_store.claim(transaction, run_id, execution_id) is not None


async def test_a_run_that_temporal_has_forgotten_is_started_again_and_can_be_claimed(
    database: Database, gateway: TemporalGateway, delivery: OutboxDelivery, reconciler: Reconciler
) -> None:
    run_id = await runs.queue_ingest(database, "d1")
    await facts.rows(
        database, "UPDATE outbox SET delivered_at = now() RETURNING id"
    )  # started in a Temporal that is gone
    await claimed(database, run_id, "an-execution-nobody-knows")
    await runs.let_stall(database, run_id)
    assert await reconciler.reconcile() == {"started": 1}
    await delivery.deliver_batch(TEMPORAL)
    view = await gateway.describe(WORKFLOW)
    assert view is not None
    assert view.run_id == run_id
    await claimed(database, run_id, view.execution_id)
    assert (await runs.run(database, run_id))["state"] == "running"


async def test_a_start_that_is_still_in_the_outbox_is_left_to_the_relay(
    database: Database, delivery: OutboxDelivery, reconciler: Reconciler
) -> None:
    run_id = await runs.queue_ingest(database, "d1")
    await runs.let_stall(database, run_id)
    assert await reconciler.reconcile() == {"moving": 1}


@pytest.mark.parametrize("was_claimed", [True, False])
async def test_a_closed_execution_whose_end_was_not_recorded_ends_its_run_and_document(
    database: Database,
    gateway: TemporalGateway,
    temporal: Client,
    delivery: OutboxDelivery,
    reconciler: Reconciler,
    was_claimed: bool,
) -> None:
    run_id = await runs.queue_ingest(database, "d1")
    await delivery.deliver_batch(TEMPORAL)
    view = await gateway.describe(WORKFLOW)
    assert view is not None
    if was_claimed:
        await claimed(database, run_id, view.execution_id)
    await temporal.get_workflow_handle(WORKFLOW).terminate()
    await runs.let_stall(database, run_id)
    assert await reconciler.reconcile() == {"ended": 1}
    row = await runs.run(database, run_id)
    assert (row["state"], row["error"]["code"]) == ("failed", "engine_lost")
    assert await runs.told(database, run_id) == ["run.failed"]
    (document,) = await facts.rows(database, "SELECT state FROM documents")
    (version,) = await facts.rows(database, "SELECT state, error FROM document_versions")
    assert (document["state"], version["state"], version["error"]["stage"]) == ("failed", "failed", "received")
    assert await reconciler.reconcile() == {}


async def test_an_execution_that_works_is_left_alone_and_one_that_should_stop_is_told_again(
    database: Database, temporal: Client, delivery: OutboxDelivery, reconciler: Reconciler
) -> None:
    working, cancelled = await runs.queue_ingest(database, "d1"), await runs.queue_ingest(database, "d2")
    await delivery.deliver_batch(TEMPORAL)
    async with database.begin(TENANT) as transaction:
        await runs_store.request_cancel(transaction, cancelled, "ada")
    await runs.let_stall(database, working, cancelled)
    assert await reconciler.reconcile() == {"alive": 1, "signalled": 1}
    history = await temporal.get_workflow_handle(f"ingest:{TENANT}:d2:1").fetch_history()
    assert [event for event in history.events if event.HasField("workflow_execution_signaled_event_attributes")]
    assert (await runs.run(database, working))["ended_at"] is None


async def test_an_execution_under_the_same_id_is_not_taken_for_that_of_another_run(
    database: Database, gateway: TemporalGateway, temporal: Client, delivery: OutboxDelivery, reconciler: Reconciler
) -> None:
    lost = await runs.queue_ingest(database, "d1")
    await delivery.deliver_batch(TEMPORAL)
    first = await gateway.describe(WORKFLOW)
    assert first is not None
    await claimed(database, lost, first.execution_id)
    await temporal.get_workflow_handle(WORKFLOW).terminate()
    present = await runs.queue_ingest(database, "d1")
    await delivery.deliver_batch(TEMPORAL)
    await runs.let_stall(database, lost, present)
    assert await reconciler.reconcile() == {"ended": 1, "alive": 1}
    assert (await runs.run(database, lost))["state"] == "failed"
    assert (await runs.run(database, present))["state"] == "queued"


async def test_runs_that_move_are_not_looked_at_and_one_leader_looks(
    database: Database, reconciler: Reconciler
) -> None:
    run_id = await runs.queue_ingest(database, "d1")
    assert await reconciler.reconcile() == {}
    await runs.let_stall(database, run_id)
    async with database.every_tenant("a test plays the other leader") as transaction:
        assert await transaction.try_lock(LEADER)
        assert await reconciler.reconcile() == {}
    assert await reconciler.reconcile() == {"moving": 1}
