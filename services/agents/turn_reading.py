"""Reads a turn from its rows, as its caller may see it now: what prompts, calls and ends are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from schemas.access import Actor
from schemas.agents import AgentConfig
from schemas.errors import PermanentFailure
from schemas.identifiers import run_stream
from services.access import withholding
from services.agents.prompting import WITHHELD, Spoken, TurnView
from services.agents.tool import CallContext
from services.agents.transcript import Transcript, read_transcript
from services.stores import sessions_store, turns_store
from services.stores.database import Row, Transaction

RECALL_STEP = "recall"


@dataclass(frozen=True)
class TurnWork:
    """Which turn a step is about."""

    tenant: str
    run_id: str
    session_id: str | None = None

    @property
    def record(self) -> str:
        return run_stream(self.run_id)


@dataclass(frozen=True)
class TurnRows:
    """A turn's row, the actor it works for, and what it has come to."""

    row: Row
    actor: Actor
    config: AgentConfig
    transcript: Transcript
    steps: dict[str, Any]

    def context(self, work: TurnWork, step: str) -> CallContext:
        incognito = bool(self.row["incognito"])
        return CallContext(
            work.tenant,
            work.run_id,
            step,
            self.actor,
            work.session_id,
            workspace=self.row["subject"] or work.run_id,
            spaces=self.config.spaces,
            incognito=incognito,
            tools=tuple(self.config.tools),
            depth=self.row["depth"],
            delegations=sum(
                plan.get("delegated", False) for each in self.transcript.replies.values() for plan in each.plans
            ),
        )


def call_record(run_id: str, step: str) -> str:
    """The record whose sources are the documents that a call's outcome came from."""
    return f"call:{run_id}:{step}"


async def turn_rows(transaction: Transaction, work: TurnWork) -> TurnRows:
    row = await turns_store.get(transaction, work.run_id)
    if row is None or row["config"] is None:
        raise PermanentFailure("corrupt", "The turn's row is not there any more")
    actor = Actor(tenant=work.tenant, user=row["actor_user"], key=row["actor_key"])
    steps = await turns_store.steps(transaction, work.run_id)
    return TurnRows(row, actor, AgentConfig.model_validate(row["config"]), read_transcript(steps), steps)


async def turn_view(transaction: Transaction, work: TurnWork, rows: TurnRows, history_messages: int) -> TurnView:
    """Looks at every source again: what the caller may not read now reaches no model (invariant 9)."""
    spoken = await sessions_store.of_run(transaction, work.run_id)
    earlier: Sequence[Row] = []
    if work.session_id is not None and history_messages:
        earlier = await sessions_store.earlier(transaction, work.session_id, work.run_id, history_messages)
    records = {call_record(work.run_id, step): step for step, each in rows.transcript.outcomes.items() if each.used}
    recalled = rows.steps.get(RECALL_STEP) or {}
    recall_record = call_record(work.run_id, RECALL_STEP)
    replies = [run_stream(message["run_id"]) for message in earlier if message["role"] == "assistant"]
    hidden = await withholding.withheld(transaction, rows.actor, [*records, *replies, recall_record])
    hidden_steps = frozenset(step for record, step in records.items() if record in hidden)
    return TurnView(
        config=rows.config,
        earlier=[_spoken(message, hidden) for message in earlier],
        spoken=[Spoken(each["role"], each["text"] or "", each["read_in"] or 0) for each in spoken if each["read_at"]],
        transcript=_without(rows.transcript, hidden_steps),
        hidden_steps=hidden_steps,
        brief=rows.row["brief"],
        remembered=() if recall_record in hidden else tuple(recalled.get("lines", ())),
    )


def _spoken(message: Row, hidden: set[str]) -> Spoken:
    withheld = message["role"] == "assistant" and run_stream(message["run_id"]) in hidden
    return Spoken(message["role"], WITHHELD if withheld or message["text"] is None else message["text"])


def _without(transcript: Transcript, hidden_steps: frozenset[str]) -> Transcript:
    """What was said after a hidden result may repeat it."""
    if not hidden_steps:
        return transcript
    first = min(int(step.partition(":")[2].partition(".")[0]) for step in hidden_steps)
    replies = {
        iteration: reply.model_copy(update={"withheld": iteration > first})
        for iteration, reply in transcript.replies.items()
    }
    return Transcript(replies, transcript.outcomes)
