"""Approvals: asked for, decided by compare-and-swap, and never decided twice. States are events; words are contents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, func, insert, literal, or_, select, update

from schemas.access import Actor
from schemas.domain_events import EventDraft
from schemas.identifiers import approval_stream, run_stream
from schemas.tools import Risk
from schemas.workflow_contracts import WAKE_SIGNAL
from services.stores import event_log, runs_store
from services.stores.database import Row, Transaction
from services.stores.readable import actor_is_active, spaces_with_role
from services.stores.tables.agents import approval_contents, approvals

OPEN_STATES = ("pending", "unknown_effect")


@dataclass(frozen=True)
class Request:
    """What is asked, for which step of which turn, and of whom. `own_run_id` is the run that waits for the decision."""

    run_id: str
    own_run_id: str
    session_id: str | None
    step: str
    user_id: str
    tool: str
    risk: Risk
    args_hash: str
    approver_roles: list[str]
    space_id: str | None
    expires_at: datetime


@dataclass(frozen=True)
class Words:
    """What a request says; it may repeat documents, so it is no part of any event."""

    arguments: dict[str, Any]
    reason: str | None = None
    preview: str | None = None


async def ask(transaction: Transaction, approval_id: str, request: Request, words: Words) -> None:
    """A pending request. The caller makes the run that waits for it."""
    await _open(transaction, approval_id, "approval.requested", "pending", request, words)


async def ask_about_unknown(transaction: Transaction, approval_id: str, request: Request, words: Words) -> None:
    """A call whose outcome nobody knows, for a person to look at. Nothing waits for it."""
    await _open(transaction, approval_id, "approval.effect_unknown", "unknown_effect", request, words)


async def _open(
    transaction: Transaction, approval_id: str, type: str, state: str, request: Request, words: Words
) -> None:
    data = {**asdict(request), "state": state, "expires_at": request.expires_at.isoformat()}
    await _append(transaction, approval_id, type, data, cause=request.run_id)
    await transaction.execute(insert(approval_contents).values(approval_id=approval_id, **asdict(words)))


async def known_after_all(transaction: Transaction, run_id: str, step: str) -> None:
    """The outcome of a call that was taken for unknown has come: nobody has to look any more."""
    wanted = (approvals.c.run_id == run_id, approvals.c.step == step, approvals.c.state == "unknown_effect")
    for row in await transaction.all(select(approvals).where(*wanted)):
        data = {"state": "approved", "decision": "known", "decided_at": transaction.now.isoformat()}
        await _append(transaction, row["id"], "approval.effect_known", data)


async def get(transaction: Transaction, approval_id: str, *, for_update: bool = False) -> Row | None:
    """The request with its words."""
    if for_update:
        await event_log.lock_stream(transaction, approval_stream(approval_id))
    statement = _with_contents().where(approvals.c.id == approval_id)
    return await transaction.one_or_none(statement.with_for_update(of=approvals) if for_update else statement)


async def decide(
    transaction: Transaction,
    row: Row,
    *,
    state: str,
    decision: str,
    by: str,
    args_hash: str,
    edited: dict[str, Any] | None,
    feedback: str | None,
) -> None:
    """For a row that is locked and open. The approval's workflow is woken by an outbox row of the same transaction."""
    data = {
        "state": state,
        "decision": decision,
        "decided_by": by,
        "decided_at": transaction.now.isoformat(),
        "args_hash": args_hash,
    }
    await _append(transaction, row["id"], "approval.decided", data, actor=by)
    if edited is not None or feedback is not None:
        words = update(approval_contents).where(approval_contents.c.approval_id == row["id"])
        await transaction.execute(words.values(edited=edited, feedback=feedback))
    await _wake(transaction, row)


async def close(transaction: Transaction, row: Row, state: str, by: str | None = None) -> None:
    """Expired or cancelled: over without a decision. For a row that is locked and pending."""
    await _append(transaction, row["id"], f"approval.{state}", {"state": state}, actor=by)
    await _wake(transaction, row)


async def acknowledge(transaction: Transaction, approval_id: str) -> None:
    of_row = approvals.c.id == approval_id
    await transaction.execute(update(approvals).where(of_row).values(acknowledged_at=transaction.now))


async def is_unacknowledged(transaction: Transaction, approval_id: str) -> bool:
    """Whether it is over and its workflow has not said that it knows."""
    over = (approvals.c.id == approval_id, approvals.c.state != "pending", approvals.c.acknowledged_at.is_(None))
    return await transaction.scalar(select(approvals.c.id).where(*over)) is not None


async def pending_of_run(transaction: Transaction, run_id: str) -> list[str]:
    wanted = and_(approvals.c.run_id == run_id, approvals.c.state == "pending")
    rows = await transaction.all(select(approvals.c.id).where(wanted).order_by(approvals.c.id))
    return [row["id"] for row in rows]


async def newest_first(
    transaction: Transaction, actor: Actor, *, state: str | None, before: str | None, limit: int
) -> Sequence[Row]:
    """Those that the actor may decide, or could have: their own, and of spaces where their role is one that may."""
    statement = _with_contents().where(may_decide(actor))
    if state is not None:
        statement = statement.where(approvals.c.state == state)
    if before is not None:
        statement = statement.where(approvals.c.id < before)
    return await transaction.all(statement.order_by(approvals.c.id.desc()).limit(limit))


async def visible(transaction: Transaction, actor: Actor, approval_id: str) -> Row | None:
    return await transaction.one_or_none(_with_contents().where(approvals.c.id == approval_id, may_decide(actor)))


def may_decide(actor: Actor) -> ColumnElement[bool]:
    """A condition on `approvals`: the one for whom the agent acts, or a role that the agent names, on the space concerned."""
    by_role = [
        and_(
            literal(role) == func.any(approvals.c.approver_roles),
            approvals.c.space_id.in_(spaces_with_role(actor, role)),
        )
        for role in ("viewer", "contributor", "manager")
    ]
    own = and_(approvals.c.user_id == actor.user, actor_is_active(actor))
    return or_(own, *by_role)


async def _wake(transaction: Transaction, row: Row) -> None:
    payload = {"operation": "signal", "run_id": row["own_run_id"], "signal": WAKE_SIGNAL}
    await event_log.enqueue(transaction, runs_store.TEMPORAL, run_stream(row["own_run_id"]), payload)


async def _append(
    transaction: Transaction,
    approval_id: str,
    type: str,
    data: dict[str, Any],
    *,
    actor: str | None = None,
    cause: str | None = None,
) -> None:
    draft = EventDraft(stream=approval_stream(approval_id), type=type, data=data, cause=cause)
    await event_log.append(transaction, draft, actor=actor)


def _with_contents() -> Any:
    words = [column for column in approval_contents.columns if column.name not in ("tenant", "approval_id")]
    joined = approvals.outerjoin(approval_contents, approval_contents.c.approval_id == approvals.c.id)
    return select(approvals, *words).select_from(joined)
