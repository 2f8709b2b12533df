"""The door to approvals: decided once, by compare-and-swap on the row; whoever comes later is told what stands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from schemas.access import Actor
from schemas.approvals import (
    STATE_OF_DECISION,
    STATE_OF_VERDICT,
    ApprovalState,
    ApprovalView,
    Decided,
    Decision,
)
from schemas.errors import Conflict, InvalidRequest, NotFound
from schemas.identifiers import run_stream
from services.access import withholding
from services.agents import approval_events, arguments, opening_runs
from services.agents.registry import ToolRegistry
from services.stores import approvals_store, idempotency_store, turns_store
from services.stores.database import Database, Row, Transaction
from services.stores.runs_store import TEMPORAL

DeliverHead = Callable[[str, str], Awaitable[None]]
_UNKNOWN = "There is no request for approval with this id that this key can see."


class Approvals:
    """Nothing a person decided rests on an engine's memory: the row is the decision, the workflow is only woken."""

    def __init__(self, database: Database, deliver_head: DeliverHead, registry: ToolRegistry) -> None:
        self._database = database
        self._deliver_head = deliver_head
        self._registry = registry

    async def newest(self, actor: Actor, state: str | None, before: str | None, limit: int) -> list[ApprovalView]:
        async with self._database.begin(actor.tenant) as transaction:
            rows = await approvals_store.newest_first(transaction, actor, state=state, before=before, limit=limit)
            hidden = await withholding.withheld(transaction, actor, [run_stream(row["run_id"]) for row in rows])
        return [_view(row, withheld=run_stream(row["run_id"]) in hidden) for row in rows]

    async def get(self, actor: Actor, approval_id: str) -> ApprovalView:
        async with self._database.begin(actor.tenant) as transaction:
            row = await approvals_store.visible(transaction, actor, approval_id)
            if row is None:
                raise NotFound(_UNKNOWN)
            verdict = await withholding.of_record(transaction, actor, run_stream(row["run_id"]))
        return _view(row, withheld=verdict.withheld)

    async def decide(self, actor: Actor, approval_id: str, decision: Decision) -> Decided:
        """Conflict("decided_otherwise") or Conflict("approval_over") with what stands, when it is too late for this one."""
        async with self._database.begin(actor.tenant) as transaction:
            if await approvals_store.visible(transaction, actor, approval_id) is None:
                raise NotFound(_UNKNOWN)
            row = await approvals_store.get(transaction, approval_id, for_update=True)
            assert row is not None
            state = self._wanted_state(row, decision)
            late = row["state"] == "pending" and row["expires_at"] <= transaction.now
            if row["state"] not in approvals_store.OPEN_STATES or late:
                return self._stands(row, decision, state)
            await self._record(transaction, actor, row, decision, state)
            again = None
            if decision.decision == "try_again":
                again = await opening_runs.repeat(transaction, actor, row, row["arguments"])
            decided = Decided(id=approval_id, state=state, outcome="recorded", run_id=again)
            await idempotency_store.complete(transaction, decided)
        if again is not None:
            await self._deliver_head(TEMPORAL, run_stream(again))
        await self._deliver_head(TEMPORAL, run_stream(row["own_run_id"]))
        return decided

    @staticmethod
    def _wanted_state(row: Row, decision: Decision) -> ApprovalState:
        """What the row becomes; a decision of the other kind than the row asks for is refused."""
        of_unknown = STATE_OF_VERDICT.get(decision.decision)
        if row["state"] == "unknown_effect" and of_unknown is None:
            raise Conflict(
                "The outcome of this call is not known: decide mark_done or try_again.", type="effect_unknown"
            )
        if row["state"] == "pending" and of_unknown is not None:
            raise Conflict(f"'{decision.decision}' is for calls whose outcome is not known.", type="not_unknown")
        state = of_unknown or STATE_OF_DECISION[decision.decision]
        if decision.arguments is not None and decision.decision not in ("approve", "approve_session"):
            raise InvalidRequest("Only an approval may change the arguments.")
        return state

    async def _record(self, transaction: Transaction, actor: Actor, row: Row, decision: Decision, state: str) -> None:
        edited = self._edited(row, decision)
        digest = row["args_hash"] if edited is None else arguments.args_hash(row["tool"], edited)
        await approvals_store.decide(
            transaction,
            row,
            state=state,
            decision=decision.decision,
            by=actor.user,
            args_hash=digest,
            edited=edited,
            feedback=decision.feedback,
        )
        if decision.decision == "approve_session" and row["session_id"] is not None:
            await turns_store.grant(transaction, row["session_id"], row["tool"], row["risk"], actor.user)
        await approval_events.tell_over(transaction, row, state)

    def _edited(self, row: Row, decision: Decision) -> dict[str, object] | None:
        """Edited arguments are held against the tool's schema before anybody relies on them."""
        if decision.arguments is None or decision.arguments == row["arguments"]:
            return None
        tool = self._registry.get(row["tool"])
        if tool is None:
            raise Conflict(f"The tool '{row['tool']}' is not there any more.", type="tool_gone")
        try:
            arguments.check(decision.arguments, tool.spec)
        except arguments.BadArguments as error:
            raise InvalidRequest(str(error)) from error
        return decision.arguments

    @staticmethod
    def _stands(row: Row, decision: Decision, state: str) -> Decided:
        same = row["state"] == state and row["decision"] == decision.decision
        approved = row["edited"] if row["edited"] is not None else row["arguments"]
        wanted = decision.arguments if decision.arguments is not None else row["arguments"]
        if same and (state != "approved" or approved == wanted):
            return Decided(id=row["id"], state=row["state"], outcome="already_recorded")
        stands = {"state": row["state"], "decided_by": _by(row), "decided_at": _at(row)}
        if row["decided_by"] is not None:
            raise Conflict(f"This request was {row['state']} already.", type="decided_otherwise", **stands)
        over = "expired" if row["state"] == "pending" else row["state"]
        raise Conflict(f"This request is over: {over}.", type="approval_over", **{**stands, "state": over})


def _view(row: Row, *, withheld: bool) -> ApprovalView:
    """The words of a request may repeat documents that its turn read; whoever may not read those decides without them."""
    hidden = withheld or row["arguments"] is None
    return ApprovalView(
        id=row["id"],
        run_id=row["run_id"],
        session_id=row["session_id"],
        tool=row["tool"],
        arguments=None if hidden else row["arguments"],
        arguments_hash=row["args_hash"],
        risk=row["risk"],
        reason=None if hidden else row["reason"],
        preview=None if hidden else row["preview"],
        state=row["state"],
        withheld=hidden,
        requested_at=row["requested_at"],
        expires_at=row["expires_at"],
        decided_by=_by(row),
        decided_at=row["decided_at"],
        decided_arguments=None if hidden else row["edited"],
        feedback=None if hidden else row["feedback"],
    )


def _by(row: Row) -> str | None:
    return f"user:{row['decided_by']}" if row["decided_by"] else None


def _at(row: Row) -> str | None:
    return row["decided_at"].isoformat() if row["decided_at"] else None
