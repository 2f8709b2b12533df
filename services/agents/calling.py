"""Step call of AgentTurn: one call of a tool, exactly as it was planned or decided, with its effect at most once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from schemas.errors import Failure, PermanentFailure
from schemas.identifiers import new_id
from schemas.runs import RunEventDraft
from schemas.settings import AgentSettings
from schemas.tools import ToolOutcome, ToolSpec
from services.access.load_access import load_access
from services.agents.arguments import args_hash
from services.agents.registry import ToolRegistry
from services.agents.thinking import result_data
from services.agents.tool import Abandons, CallContext, Prepares, Tool, ToolFailed, WithinCommit, refusals
from services.agents.transcript import KeptCall
from services.agents.turn_reading import TurnRows, TurnWork, call_record, turn_rows
from services.stores import (
    answers_store,
    approvals_store,
    documents_store,
    effects_store,
    run_event_log,
    runs_store,
    scrub_store,
    turns_store,
)
from services.stores.database import Database, Row, Transaction

NO_RIGHTS = "The call was not made: whom it would act for has no rights any more."
UNDECIDED = "undecided"


@dataclass(frozen=True)
class Ready:
    """A call about to be made. `outcome` when it is not: it was rejected, it expired, or it stands already."""

    rows: TurnRows
    kept: KeptCall
    arguments: dict[str, Any]
    tool: Tool | None
    context: CallContext
    outcome: ToolOutcome | None = None
    stands: bool = False
    undecided: bool = False


class OutcomeStands(Exception):
    """Another attempt's outcome was recorded first: what this one would write is undone."""


class Calling:
    """Looks at the decision, the rights and the key at the moment of the call."""

    def __init__(
        self,
        database: Database,
        registry: ToolRegistry,
        settings: AgentSettings,
        failpoint: Callable[[str], None],
    ) -> None:
        self._database = database
        self._registry = registry
        self._settings = settings
        self._failpoint = failpoint

    async def run(
        self, work: TurnWork, step: str, approval_id: str | None = None, child_run_id: str | None = None
    ) -> dict[str, int]:
        """Counts: ok; `undecided` when nobody has decided yet, or the turn `child_run_id` has not ended.

        An outcome that stands is not made again.
        """
        ready = await self._begin(work, step, approval_id, child_run_id)
        if ready.undecided:
            return {UNDECIDED: 1}
        if ready.stands:
            return {}
        outcome = ready.outcome
        if outcome is None:
            assert ready.tool is not None
            self._failpoint("call.begun")
            made = await self._made(work, ready.tool, ready)
            self._failpoint("call.made")
            if not isinstance(made, ToolOutcome):
                return await self._commit(work, step, ready, made)
            outcome = made
        with contextlib.suppress(OutcomeStands):
            async with self._database.begin(work.tenant) as transaction:
                await self._store(transaction, work, step, ready, outcome)
        return {"ok": int(outcome.ok)}

    async def _begin(self, work: TurnWork, step: str, approval_id: str | None, child_run_id: str | None) -> Ready:
        async with self._database.begin(work.tenant) as transaction:
            rows = await turn_rows(transaction, work)
            kept = _kept_call(rows, step)
            context = rows.context(work, step)
            tool = self._registry.get(kept.tool) if kept.tool in rows.config.tools else None
            ready = Ready(rows, kept, kept.arguments or {}, tool, context)
            if step in rows.transcript.outcomes:
                return replace(ready, stands=True)
            if approval_id is not None:
                ready = await self._decided(transaction, ready, approval_id)
            if child_run_id is not None:
                below = await runs_store.get(transaction, child_run_id)
                open_ = below is not None and below["ended_at"] is None
                ready = replace(ready, undecided=open_, context=replace(context, child_run_id=child_run_id))
            if ready.outcome is not None or ready.undecided:
                return ready
            if await load_access(transaction, rows.actor) is None:
                return replace(ready, outcome=_refused(NO_RIGHTS))
            if tool is None:
                return replace(ready, outcome=_refused(f"The tool '{kept.tool}' is not there any more."))
        return ready

    async def _decided(self, transaction: Transaction, ready: Ready, approval_id: str) -> Ready:
        """The approved arguments, and only those: bound to their hash, whoever would change them."""
        row = await approvals_store.get(transaction, approval_id)
        if row is None:
            raise PermanentFailure("corrupt", "The request for approval is not there any more")
        if row["state"] == "pending":
            return replace(ready, undecided=True)
        if row["state"] != "approved":
            return replace(ready, outcome=_refused(_why_not(row)))
        approved = row["edited"] if row["edited"] is not None else row["arguments"]
        if args_hash(row["tool"], approved) != row["args_hash"] or row["tool"] != ready.kept.tool:
            return replace(ready, outcome=_refused("The approval was given for another call."))
        context = replace(ready.context, feedback=row["feedback"])
        return replace(ready, arguments=approved, context=context)

    async def _made(self, work: TurnWork, tool: Tool, ready: Ready) -> ToolOutcome | WithinCommit:
        """An effect that another attempt had begun is not tried again: nobody knows what became of it.

        What the tool needs is looked for before its key is reserved: an engine that is away then is waited for.
        """
        if tool.spec.idempotent:
            return await self._call(tool, ready)
        digest = args_hash(tool.spec.name, ready.arguments)
        async with self._database.begin(work.tenant) as transaction:
            begun = await effects_store.state(transaction, ready.context.key) is not None
        if begun:
            return unknown_outcome(tool.spec)
        if isinstance(tool, Prepares):
            try:
                with refusals():
                    await tool.prepare(ready.context)
            except ToolFailed as failed:
                return _refused(str(failed))
        async with self._database.begin(work.tenant) as transaction:
            if not await effects_store.reserve(transaction, ready.context.key, digest):
                return unknown_outcome(tool.spec)
        return await self._call(tool, ready)

    async def _call(self, tool: Tool, ready: Ready) -> ToolOutcome | WithinCommit:
        try:
            with refusals():
                async with asyncio.timeout(tool.spec.timeout_s):
                    made = await tool.call(ready.context, ready.arguments)
        except ToolFailed as failed:
            return _refused(str(failed))
        except TimeoutError:
            said = f"The tool '{tool.spec.name}' did not end within {tool.spec.timeout_s:g} s."
            return _refused(said) if tool.spec.idempotent else unknown_outcome(tool.spec, said)
        except Failure:
            if tool.spec.idempotent:
                raise
            return unknown_outcome(tool.spec)
        except asyncio.CancelledError:
            if isinstance(tool, Abandons):
                with contextlib.suppress(Failure):
                    await asyncio.shield(tool.abandon(ready.context))
            raise
        return self._capped(made, tool.spec) if isinstance(made, ToolOutcome) else made

    async def _commit(self, work: TurnWork, step: str, ready: Ready, write: WithinCommit) -> dict[str, int]:
        """The effect on our own rows and its record are one commit; refused, the record alone."""
        outcome = ToolOutcome()
        with contextlib.suppress(OutcomeStands):
            try:
                async with self._database.begin(work.tenant) as transaction:
                    with refusals():
                        outcome = await write(transaction)
                    await self._store(transaction, work, step, ready, outcome)
            except ToolFailed as failed:
                outcome = _refused(str(failed))
                async with self._database.begin(work.tenant) as transaction:
                    await self._store(transaction, work, step, ready, outcome)
        return {"ok": int(outcome.ok)}

    async def _store(
        self, transaction: Transaction, work: TurnWork, step: str, ready: Ready, outcome: ToolOutcome
    ) -> None:
        """The outcome, its sources on record before anything of it can be said, and its event."""
        if not await turns_store.store_outcome(transaction, work.run_id, step, outcome.model_dump(mode="json")):
            raise OutcomeStands(step)
        used = sorted({(each.document_id, each.version) for each in outcome.used})
        if ready.rows.row["state"] == "waiting" and not await approvals_store.pending_of_run(transaction, work.run_id):
            await runs_store.resume(transaction, work.run_id)
        await documents_store.hold_sources(transaction, [document_id for document_id, _ in used])
        await answers_store.record_sources(transaction, [work.record, call_record(work.run_id, step)], used)
        if ready.tool is not None and not ready.tool.spec.idempotent:
            await self._mark_effect(transaction, work, step, ready, outcome)
        told = RunEventDraft(type="tool.result", data=result_data(ready.kept.call_id, outcome))
        await run_event_log.append(transaction, work.run_id, [told])
        await scrub_store.withhold_if_removed(transaction, work.record)

    async def _mark_effect(
        self, transaction: Transaction, work: TurnWork, step: str, ready: Ready, outcome: ToolOutcome
    ) -> None:
        """What is not known becomes a request to look at it; what comes to be known closes that."""
        assert ready.tool is not None
        if outcome.effect != "unknown":
            await effects_store.mark(transaction, ready.context.key, "done" if outcome.ok else "failed")
            await approvals_store.known_after_all(transaction, work.run_id, step)
            return
        await effects_store.mark(transaction, ready.context.key, "unknown")
        if ready.tool.spec.risk == "read":  # nothing outside was touched: the model itself can look
            return
        request = approvals_store.Request(
            run_id=work.run_id,
            own_run_id=work.run_id,
            session_id=work.session_id,
            step=step,
            user_id=ready.rows.actor.user,
            tool=ready.tool.spec.name,
            risk=ready.tool.spec.risk,
            args_hash=args_hash(ready.tool.spec.name, ready.arguments),
            approver_roles=list(ready.rows.config.approver_roles),
            space_id=None,
            expires_at=transaction.now + timedelta(days=self._settings.approval_days),
        )
        words = approvals_store.Words(ready.arguments, reason=outcome.text)
        await approvals_store.ask_about_unknown(transaction, new_id(), request, words)

    @staticmethod
    def _capped(outcome: ToolOutcome, spec: ToolSpec) -> ToolOutcome:
        if len(outcome.text) <= spec.output_chars:
            return outcome
        left = len(outcome.text) - spec.output_chars
        text = f"{outcome.text[: spec.output_chars]}\n[… {left} characters more, left out: the tool gives {spec.output_chars}]"
        return outcome.model_copy(update={"text": text})


def unknown_outcome(spec: ToolSpec, why: str = "The call was cut off in the middle.") -> ToolOutcome:
    who = "Look what is there before you go on." if spec.risk == "read" else "A person has to look."
    said = f"{why} Whether '{spec.name}' had its effect is not known; it is not tried again. {who}"
    return ToolOutcome(ok=False, text=said, summary="outcome unknown", effect="unknown")


def _kept_call(rows: TurnRows, step: str) -> KeptCall:
    iteration, _, place = step.partition(":")[2].partition(".")
    reply = rows.transcript.replies.get(int(iteration))
    if reply is None or int(place) >= len(reply.calls):
        raise PermanentFailure("corrupt", f"No reply of this turn asked for the call {step}")
    return reply.calls[int(place)]


def _refused(said: str) -> ToolOutcome:
    return ToolOutcome(ok=False, text=said, summary=said)


def _why_not(row: Row) -> str:
    said = {
        "rejected": "A person rejected this call.",
        "expired": "Nobody decided in time; the request has expired and the call was not made.",
        "cancelled": "The request was withdrawn; the call was not made.",
    }.get(row["state"], f"The request is {row['state']}; the call was not made.")
    return f"{said} They said: {row['feedback']}" if row["feedback"] else said
