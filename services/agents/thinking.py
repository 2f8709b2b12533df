"""Step think of AgentTurn: one call of the model, streamed, and what is to become of the calls it asks for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

from schemas.errors import PermanentFailure
from schemas.identifiers import new_id
from schemas.runs import RunEventDraft
from schemas.settings import AgentSettings
from schemas.tools import CallPlan
from services.agents import limits, opening_runs, prompting
from services.agents.planning import Plan, PlannedCall, Planning
from services.agents.recalling import Recalling
from services.agents.registry import ToolRegistry
from services.agents.repeating import is_repeat, repeated
from services.agents.transcript import Reply, call_step, think_step
from services.agents.turn_reading import TurnRows, TurnWork, turn_rows, turn_view
from services.events.token_writer import TokenWriter
from services.gateways.chat_model import ChatDelta, ChatEnd, ChatModel
from services.retrieval.citation_marks import CitationStream
from services.retrieval.citations import supplied_numbers
from services.stores import run_event_log, runs_store, scrub_store, sessions_store, turns_store, usage_store
from services.stores.database import Database, Transaction

ChatModelFactory = Callable[[str], ChatModel]
Failpoint = Callable[[str], None]
REASON_CHARS = 2_000


@dataclass(frozen=True)
class ThoughtPlan:
    """What the turn's workflow does next."""

    calls: list[CallPlan]
    final: bool


@dataclass(frozen=True)
class _Begun:
    rows: TurnRows
    prompt: prompting.TurnPrompt
    granted: set[tuple[str, str]]
    conclude: bool


class Thinking:
    """One attempt holds the pen of the step; a reply that stands already is not asked for again."""

    def __init__(
        self,
        database: Database,
        chat_model: ChatModelFactory,
        registry: ToolRegistry,
        planning: Planning,
        recalling: Recalling,
        settings: AgentSettings,
        *,
        token_rows_per_s: float,
        failpoint: Failpoint,
    ) -> None:
        self._database = database
        self._chat_model = chat_model
        self._registry = registry
        self._planning = planning
        self._recalling = recalling
        self._settings = settings
        self._token_rows_per_s = token_rows_per_s
        self._failpoint = failpoint

    async def run(self, work: TurnWork, iteration: int, attempt: str) -> ThoughtPlan:
        step = think_step(iteration)
        writer = TokenWriter(
            self._database,
            work.tenant,
            work.run_id,
            step=step,
            attempt=attempt,
            rows_per_s=self._token_rows_per_s,
        )
        if iteration == 1:
            await self._recalling.run(work)
        begun = await self._begin(work, iteration, writer)
        kept = begun.rows.steps.get(step)
        if kept is not None:
            return _thought(Reply.model_validate(kept))
        brief = begun.rows.row["brief"]
        if is_repeat(brief):
            reply, plan = repeated(brief, begun.rows.transcript, iteration, self._registry)
            await writer.write(reply.text)
            await writer.flush()
            return await self._store(work, begun.rows, step, reply, plan, attempt)
        began_at = time.monotonic()
        reply, end = await self._ask(begun, writer)
        offered = [] if begun.conclude else end.calls  # a model may ask for tools that it was not offered
        requested = [(call_step(iteration, place), call) for place, call in enumerate(offered)]
        rows = begun.rows
        context = rows.context(work, step)
        plan = await self._planning.plan(requested, rows.config, rows.transcript, begun.granted, context)
        reply = reply.model_copy(
            update={
                "calls": [planned.kept for planned in plan.calls],
                "finish": end.finish_reason,
                "final": begun.conclude
                or (not plan.calls and bool(reply.text.strip()) and end.finish_reason == "stop"),
                "stop_tools": plan.stop_tools,
                "input_tokens": end.input_tokens,
                "output_tokens": end.output_tokens,
                "cost": end.cost,
                "ms": round((time.monotonic() - began_at) * 1000, 1),
            }
        )
        await writer.flush()
        return await self._store(work, rows, step, reply, plan, attempt)

    async def _begin(self, work: TurnWork, iteration: int, writer: TokenWriter) -> _Begun:
        """Everything the reply is made from, and the pen, in one transaction. What people said meanwhile is read now."""
        async with self._database.begin(work.tenant) as transaction:
            await sessions_store.read_new(transaction, work.run_id, iteration)
            rows = await turn_rows(transaction, work)
            granted = await turns_store.grants(transaction, work.session_id) if work.session_id else set()
            view = await turn_view(transaction, work, rows, self._settings.history_messages)
            if think_step(iteration) not in rows.steps:
                limits.require_room(rows.transcript, rows.config.limits, self._settings)
                if limits.has_daily_bound(self._settings):
                    limits.require_day(await usage_store.last_day(transaction, rows.actor.user), self._settings)
                await writer.take_pen(transaction, rows.transcript.text)
        conclude = limits.must_conclude(rows.transcript, iteration, rows.config.limits, self._settings)
        specs = self._registry.specs(rows.config.tools)
        prompt = prompting.build(view, specs, context_tokens=self._settings.context_tokens, conclude=conclude)
        return _Begun(rows, prompt, granted, conclude)

    async def _ask(self, begun: _Begun, writer: TokenWriter) -> tuple[Reply, ChatEnd]:
        # a provider's SDK takes seconds to import: on the event loop that would stop the heartbeat of every activity
        model = await asyncio.to_thread(self._chat_model, begun.rows.config.model)
        prompt, said_before = begun.prompt, begun.rows.transcript.text
        marks, text, thinking, joint, end = CitationStream(supplied_numbers(prompt.passages)), "", "", "", None
        stream = model.stream(prompt.system, prompt.conversation, self._settings.max_output_tokens, prompt.tools)
        async with aclosing(cast(AsyncGenerator[ChatDelta | ChatEnd, None], stream)) as items:
            async for item in items:
                if isinstance(item, ChatEnd):
                    end = item
                    continue
                await writer.write(item.thinking, "thinking")
                thinking += item.thinking
                piece = marks.feed(item.text)
                if piece and not text:
                    joint = _joint(said_before, begun.rows.transcript.replies.get(begun.rows.transcript.iteration))
                    await writer.write(joint)
                text += piece
                await writer.write(piece)
                self._failpoint("think.mid_stream")
        rest = marks.close()
        await writer.write(rest)
        if end is None:
            raise PermanentFailure("model_unavailable", "The model's stream had no end")
        return Reply(text=text + rest, joint=joint, thinking=thinking), end

    async def _store(
        self, work: TurnWork, rows: TurnRows, step: str, reply: Reply, plan: Plan, attempt: str
    ) -> ThoughtPlan:
        """Reply, answered calls, requests for approval and their events: one transaction, fenced by the pen."""
        async with self._database.begin(work.tenant) as transaction:
            now = transaction.now
            expires = now + timedelta(days=self._settings.approval_days)
            plans = [_call_plan(planned, expires.isoformat()) for planned in plan.calls if planned.outcome is None]
            kept = reply.model_copy(update={"plans": [each.model_dump(mode="json") for each in plans]})
            results: dict[str, Any] = {step: kept.model_dump(mode="json")}
            results |= {each.step: each.outcome.model_dump(mode="json") for each in plan.calls if each.outcome}
            if any(each.approval_id for each in plans):
                await runs_store.wait(transaction, work.run_id, "approval", expires.isoformat())
            by_step = {each.step: each for each in plans}
            for planned in plan.calls:
                if planned.approval_id is not None:
                    reason = reply.text.strip()[:REASON_CHARS] or None
                    await opening_runs.ask(transaction, work, rows, planned, by_step[planned.step], reason)
            spent = rows.transcript.spent() + reply.spent()
            await opening_runs.hand_on(transaction, work, rows, plan, by_step, spent, self._settings)
            await run_event_log.append(
                transaction, work.run_id, _events(plan, plans, expires.isoformat()), step=step, attempt=attempt
            )
            await _tell_above(transaction, rows, plan)
            await turns_store.store_steps(transaction, work.run_id, results)
            if reply.input_tokens or reply.output_tokens:
                await usage_store.add(
                    transaction,
                    run_id=work.run_id,
                    step=step,
                    user=rows.actor.user,
                    kind="turn",
                    model=rows.config.model,
                    input_tokens=reply.input_tokens,
                    output_tokens=reply.output_tokens,
                    cost=reply.cost,
                )
            await scrub_store.withhold_if_removed(transaction, work.record)
        return _thought(kept)


async def _tell_above(transaction: Transaction, rows: TurnRows, plan: Plan) -> None:
    """Who watches the turn that delegated would otherwise see it stand still: its sub-agents' requests are told there too."""
    asked = [planned for planned in plan.calls if planned.approval_id is not None]
    if not asked or rows.row["parent_run_id"] is None:
        return
    drafts = [
        RunEventDraft(type="approval.requested", data={"approval_id": each.approval_id, "tool": each.kept.tool})
        for each in asked
    ]
    for run_id in await turns_store.ancestors(transaction, rows.row["run_id"]):
        await run_event_log.append(transaction, run_id, drafts)


def _call_plan(planned: PlannedCall, expires_at: str) -> CallPlan:
    assert planned.spec is not None
    asked = planned.approval_id is not None
    return CallPlan(
        step=planned.step,
        tool=planned.spec.name,
        quick=planned.spec.quick and not asked,
        alone=planned.spec.alone,
        approval_id=planned.approval_id,
        child_run_id=new_id() if asked or planned.delegation is not None else None,
        expires_at=expires_at if asked else None,
        delegated=planned.delegation is not None,
    )


def _events(plan: Plan, plans: list[CallPlan], until: str) -> list[RunEventDraft]:
    events: list[RunEventDraft] = []
    for planned in plan.calls:
        kept = planned.kept
        arguments = kept.arguments if kept.arguments is not None else {"raw": kept.raw}
        told = {"call_id": kept.call_id, "tool": kept.tool, "arguments": arguments, "risk": planned.risk}
        events.append(RunEventDraft(type="tool.call", data=told))
        if planned.outcome is not None:
            events.append(RunEventDraft(type="tool.result", data=result_data(kept.call_id, planned.outcome)))
        if planned.approval_id is not None:
            asked = {"approval_id": planned.approval_id, "tool": kept.tool}
            events.append(RunEventDraft(type="approval.requested", data=asked))
    if any(each.approval_id for each in plans):
        events.append(RunEventDraft(type="run.waiting", data={"for": "approval", "until": until}))
    return events


def result_data(call_id: str, outcome: Any) -> dict[str, Any]:
    """A `tool.result` event. `effect` is said of calls that had one, or may have had."""
    told = {"call_id": call_id, "ok": outcome.ok, "summary": outcome.summary, "result_ref": outcome.result_ref}
    return told if outcome.effect == "none" else {**told, "effect": outcome.effect}


def _thought(reply: Reply) -> ThoughtPlan:
    return ThoughtPlan([CallPlan.model_validate(each) for each in reply.plans], reply.final)


def _joint(said_before: str, last: Reply | None) -> str:
    """Between what was said before and this reply: nothing when the last one was only cut off."""
    if not said_before:
        return ""
    return "" if last is not None and last.finish == "length" and not last.calls else "\n\n"
