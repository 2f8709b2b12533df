"""The runs that a reply needs: requests that wait for a person, and sub-agents' turns. The turn's workflow starts them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from schemas.access import Actor
from schemas.identifiers import new_id
from schemas.settings import AgentSettings
from schemas.tools import CallPlan, Spent
from schemas.workflow_contracts import AGENT_TURN, ASK_APPROVAL
from services.agents import limits
from services.agents.planning import Plan, PlannedCall
from services.agents.turn_reading import TurnRows, TurnWork
from services.stores import approvals_store, runs_store, turns_store
from services.stores.database import Row, Transaction


async def ask(
    transaction: Transaction, work: TurnWork, rows: TurnRows, planned: PlannedCall, plan: CallPlan, reason: str | None
) -> None:
    """A pending request, and the run that waits until somebody decides."""
    assert planned.approval_id is not None
    assert planned.spec is not None
    assert plan.child_run_id is not None
    assert plan.expires_at is not None
    await runs_store.create(
        transaction,
        ASK_APPROVAL,
        run_id=plan.child_run_id,
        workflow_id=f"approval:{work.tenant}:{planned.approval_id}",
        actor=rows.actor,
        input_ref={"approval_id": planned.approval_id, "expires_at": plan.expires_at, "tool": planned.spec.name},
        subject=planned.approval_id,
        parent_id=work.run_id,
        traceparent=rows.row["input_ref"].get("traceparent"),
        start=False,
    )
    request = approvals_store.Request(
        run_id=work.run_id,
        own_run_id=plan.child_run_id,
        session_id=work.session_id,
        step=planned.step,
        user_id=rows.actor.user,
        tool=planned.spec.name,
        risk=planned.spec.risk,
        args_hash=planned.args_hash,
        approver_roles=list(rows.config.approver_roles),
        space_id=planned.about.space_id,
        expires_at=datetime.fromisoformat(plan.expires_at),
    )
    words = approvals_store.Words(planned.kept.arguments or {}, reason, planned.about.preview)
    await approvals_store.ask(transaction, planned.approval_id, request, words)


async def hand_on(
    transaction: Transaction,
    work: TurnWork,
    rows: TurnRows,
    plan: Plan,
    by_step: dict[str, CallPlan],
    spent: Spent,
    settings: AgentSettings,
) -> None:
    """A turn for each delegation, with its brief, its tools and its slice of what is left to spend.

    `spent`: by the turn so far, this reply included.
    """
    delegated = [planned for planned in plan.calls if planned.delegation is not None]
    for planned in delegated:
        assert planned.delegation is not None
        child_run_id = by_step[planned.step].child_run_id
        assert child_run_id is not None
        await runs_store.create(
            transaction,
            AGENT_TURN,
            run_id=child_run_id,
            workflow_id=f"turn:{work.tenant}:{child_run_id}",
            actor=rows.actor,
            input_ref={"session_id": None},
            subject=work.session_id,
            parent_id=work.run_id,
            traceparent=rows.row["input_ref"].get("traceparent"),
            start=False,
        )
        part = limits.slice_of(spent, rows.config.limits, settings, len(delegated))
        config = rows.config.model_copy(update={"tools": planned.delegation.tools, "limits": part})
        await turns_store.create(
            transaction,
            child_run_id,
            agent_id=rows.config.agent_id,
            parent_run_id=work.run_id,
            depth=rows.row["depth"] + 1,
            brief=planned.delegation.brief,
            config=config.model_dump(mode="json"),
        )


async def repeat(transaction: Transaction, actor: Actor, row: Row, arguments: dict[str, Any]) -> str:
    """A run of its own, and so with a key of its own, for a call whose first outcome nobody knows. Gives its id."""
    run_id, turn = new_id(), await turns_store.get(transaction, row["run_id"])
    assert turn is not None
    await runs_store.create(
        transaction,
        AGENT_TURN,
        run_id=run_id,
        workflow_id=f"turn:{actor.tenant}:{run_id}",
        actor=Actor(tenant=actor.tenant, user=turn["actor_user"], key=turn["actor_key"]),
        input_ref={"session_id": None},
        subject=row["session_id"],
        parent_id=row["run_id"],
        traceparent=turn["input_ref"].get("traceparent"),
    )
    await turns_store.create(
        transaction,
        run_id,
        agent_id=turn["agent_id"],
        parent_run_id=row["run_id"],
        depth=turn["depth"] + 1,
        brief={"repeat": {"tool": row["tool"], "arguments": arguments}},
        config=turn["config"],
    )
    return run_id
