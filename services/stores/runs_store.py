"""Runs: made, claimed, moved and ended; each change is an event (invariants 2, 4 and 8)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import bindparam, select, text, update
from sqlalchemy.dialects.postgresql import JSONB, insert

from schemas.access import Actor
from schemas.domain_events import EventDraft
from schemas.identifiers import run_stream
from schemas.runs import ENDED_RUN_STATES, RunEnd, RunView
from schemas.workflow_contracts import CANCEL_SIGNAL, WorkflowContract
from services.stores import event_log
from services.stores.database import Row, Transaction
from services.stores.prepared import Prepared
from services.stores.tables.runs import run_steps, runs

TEMPORAL = "temporal"
CANCEL_CHANNEL = "perdure_cancel"
ENDED_CHANNEL = "perdure_run_ended"
_OF_RUN = runs.c.id == bindparam("run_id")
_GET = Prepared(select(runs).where(_OF_RUN))
_GET_FOR_UPDATE = Prepared(select(runs).where(_OF_RUN).with_for_update())
_CANCEL_REQUESTED = Prepared(select(runs.c.cancel_requested_at).where(_OF_RUN))
_TOUCH = Prepared(update(runs).where(_OF_RUN).values(progressed_at=bindparam("now")))
_STEP_RESULT = Prepared(
    select(run_steps.c.result).where(run_steps.c.run_id == bindparam("run_id"), run_steps.c.step == bindparam("name"))
)
_STORE_STEP = Prepared(
    text(
        """
        INSERT INTO run_steps (run_id, step, result) VALUES (:run_id, :step, :result)
        ON CONFLICT (run_id, step) DO UPDATE SET result = excluded.result
        """
    ).bindparams(bindparam("result", type_=JSONB))
)


async def create(
    transaction: Transaction,
    contract: WorkflowContract,
    *,
    run_id: str,
    workflow_id: str,
    actor: Actor,
    input_ref: dict[str, Any],
    subject: str | None = None,
    space_id: str | None = None,
    parent_id: str | None = None,
    traceparent: str | None = None,
    start: bool = True,
) -> None:
    """A queued run and the outbox row that starts its workflow. `input_ref` holds ids, never text.

    Without `start` another workflow starts this one: its session, or the turn that waits for it.
    """
    data = {
        "kind": contract.kind,
        "state": "queued",
        "actor_user": actor.user,
        "actor_key": actor.key,
        "contract": contract.name,
        "input_ref": {**input_ref, "traceparent": traceparent},
        "workflow_id": workflow_id,
        "subject": subject,
        "space_id": space_id,
        "parent_id": parent_id,
    }
    draft = EventDraft(stream=run_stream(run_id), type="run.queued", data=data, cause=parent_id)
    await event_log.append(transaction, draft, actor=actor.user, correlation=run_id, traceparent=traceparent)
    if start:
        await event_log.enqueue(transaction, TEMPORAL, run_stream(run_id), {"operation": "start", "run_id": run_id})


async def get(transaction: Transaction, run_id: str, *, for_update: bool = False) -> Row | None:
    if not for_update:
        return await transaction.one_or_none(_GET, {"run_id": run_id})
    await event_log.lock_stream(transaction, run_stream(run_id))
    return await transaction.one_or_none(_GET_FOR_UPDATE, {"run_id": run_id})


async def claim(transaction: Transaction, run_id: str, execution_id: str) -> Row | None:
    """Binds the run to this execution, once; the run as it was before, so the first claim finds no `execution_id` in it.

    None when it has ended or is another execution's (invariant 3).
    """
    row = await get(transaction, run_id, for_update=True)
    if row is None or row["ended_at"] is not None:
        return None
    if row["execution_id"] not in (None, execution_id):
        return None
    if row["execution_id"] is None:
        data = {"state": "running", "execution_id": execution_id, "started_at": transaction.now.isoformat()}
        await append(transaction, row, "run.started", data)
    return row


async def append(transaction: Transaction, run: Row, type: str, data: dict[str, Any]) -> None:
    draft = EventDraft(stream=run_stream(run["id"]), type=type, data=data)
    traceparent = (run["input_ref"] or {}).get("traceparent")
    await event_log.append(transaction, draft, actor=run["actor_user"], correlation=run["id"], traceparent=traceparent)


async def end(transaction: Transaction, run_id: str, end: RunEnd) -> bool:
    """Records the run's one end. False when it had ended before."""
    row = await get(transaction, run_id, for_update=True)
    if row is None or row["ended_at"] is not None:
        return False
    data = {
        "state": end.state,
        "ended_at": transaction.now.isoformat(),
        "error": end.error,
        "usage": end.usage,
        "waiting_for": None,
        "waiting_until": None,
    }
    await append(transaction, row, "run.ended", data)
    await transaction.notify(ENDED_CHANNEL, run_id)
    return True


async def wait(transaction: Transaction, run_id: str, waiting_for: str, until: str | None) -> None:
    row = await get(transaction, run_id, for_update=True)
    if row is None or row["ended_at"] is not None or row["waiting_for"] == waiting_for:
        return
    data = {"state": "waiting", "waiting_for": waiting_for, "waiting_until": until}
    await append(transaction, row, "run.waiting", data)


async def resume(transaction: Transaction, run_id: str) -> None:
    row = await get(transaction, run_id, for_update=True)
    if row is not None and row["state"] == "waiting":
        await append(transaction, row, "run.resumed", {"state": "running", "waiting_for": None, "waiting_until": None})


async def request_cancel(transaction: Transaction, run_id: str, by: str | None) -> bool:
    """The wish is a column; a NOTIFY wakes the worker that holds the run and a signal wakes its workflow."""
    row = await get(transaction, run_id, for_update=True)
    if row is None or row["ended_at"] is not None:
        return False
    if row["cancel_requested_at"] is None:
        data = {"cancel_requested_at": transaction.now.isoformat(), "cancelled_by": by}
        await append(transaction, row, "run.cancel_requested", data)
        payload = {"operation": "signal", "run_id": run_id, "signal": CANCEL_SIGNAL, "argument": {"by": by}}
        await event_log.enqueue(transaction, TEMPORAL, run_stream(run_id), payload)
    await transaction.notify(CANCEL_CHANNEL, run_id)
    return True


async def cancel_requested(transaction: Transaction, run_id: str) -> bool:
    return await transaction.scalar(_CANCEL_REQUESTED, {"run_id": run_id}) is not None


async def open_runs_of(transaction: Transaction, subject: str, kind: str) -> list[str]:
    statement = select(runs.c.id).where(runs.c.subject == subject, runs.c.kind == kind, runs.c.ended_at.is_(None))
    return [row["id"] for row in await transaction.all(statement.order_by(runs.c.id))]


async def open_children(transaction: Transaction, run_id: str, kind: str) -> list[str]:
    wanted = (runs.c.parent_id == run_id, runs.c.kind == kind, runs.c.ended_at.is_(None))
    return [row["id"] for row in await transaction.all(select(runs.c.id).where(*wanted).order_by(runs.c.id))]


async def touch(transaction: Transaction, run_id: str) -> None:
    """Progress that is no event: keeps the reconciler from taking the run for a stalled one."""
    await transaction.run(_TOUCH, {"run_id": run_id, "now": transaction.now})


async def step_result(transaction: Transaction, run_id: str, step: str) -> Any | None:
    return await transaction.scalar(_STEP_RESULT, {"run_id": run_id, "name": step})


async def store_step(transaction: Transaction, run_id: str, step: str, result: Any) -> None:
    """A step's result under (run, step): an activity run again finds it and does the work no second time (invariant 4)."""
    await transaction.run(_STORE_STEP, {"run_id": run_id, "step": step, "result": result})


async def count_failure(transaction: Transaction, run_id: str, step: str) -> int:
    """Adds one transient failure to the step and gives the new count; lost attempts never come through here."""
    row = insert(run_steps).values(run_id=run_id, step=step, failures=1)
    grown = row.on_conflict_do_update(index_elements=["run_id", "step"], set_={"failures": run_steps.c.failures + 1})
    return int(await transaction.scalar(grown.returning(run_steps.c.failures)))


def has_ended(row: Row) -> bool:
    return row["state"] in ENDED_RUN_STATES


def view(row: Row) -> RunView:
    actor = row["actor_user"]
    return RunView.model_validate({**row, "actor": f"user:{actor}" if actor else None})
