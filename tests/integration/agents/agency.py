"""Agents on a `World`: real stores, real retrieval, a scripted model. Turns are run in this process as their workflow does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from infra.agent_wiring import build_registry
from schemas.agents import AgentDraft, AgentView
from schemas.approvals import ApprovalView, Decision
from schemas.conversations import MessageDraft, MessageView, SessionDraft
from schemas.errors import PermanentFailure
from schemas.identifiers import new_id
from schemas.runs import RunEnd, RunEvent
from schemas.settings import AgentSettings
from schemas.tools import CallPlan, ToolOutcome, ToolSpec
from services.agents import turn_beginning
from services.agents.agents import Agents
from services.agents.approval_waiting import ApprovalWaiting
from services.agents.approvals import Approvals
from services.agents.calling import Calling
from services.agents.memories import Memories
from services.agents.planning import Planning
from services.agents.recalling import Recalling
from services.agents.registry import ToolRegistry
from services.agents.session_queue import SessionQueue
from services.agents.sessions import Sessions
from services.agents.thinking import Thinking
from services.agents.tool import About, CallContext
from services.agents.turn_ending import TurnEnding
from services.agents.turn_reading import TurnWork
from services.agents.workspace import Connect
from services.gateways.select_chat_model import chat_models
from services.stores import runs_store, turns_store
from services.stores.database import Row
from services.stores.tables.runs import runs
from tests.fakes.openai_server import OpenAIServer, Reply
from tests.world.builders import Person, World

MODEL = "openai-chat:scripted"
Decide = Callable[[ApprovalView], Awaitable[None]]


async def _leave_it_queued(destination: str, stream: str) -> None:
    """No Temporal here."""


def _no_failpoint(name: str) -> None:
    """Nothing is killed here."""


class Bell:
    """The edge of the world: a tool whose every call is heard, and which cannot tell a second call from a first."""

    spec = ToolSpec(
        name="ring_bell",
        description="Rings.",
        parameters={"type": "object", "properties": {"times": {"type": "integer"}}, "additionalProperties": False},
        risk="destructive",
        idempotent=False,
        alone=True,
    )

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        self.breaks: BaseException | None = None
        self.begun = asyncio.Event()
        self.waits: asyncio.Event | None = None

    async def about(self, context: CallContext, arguments: dict[str, Any]) -> About:
        return About(preview=f"rings {arguments.get('times', 1)} times")

    async def call(self, context: CallContext, arguments: dict[str, Any]) -> ToolOutcome:
        self.heard.append(arguments)
        self.begun.set()
        if self.waits is not None:
            await self.waits.wait()
        if self.breaks is not None:
            raise self.breaks
        return ToolOutcome(text="It rang.", summary="It rang.", effect="done")


def calls(name: str, **arguments: Any) -> dict[str, str]:
    return {"name": name, "arguments": json.dumps(arguments)}


@dataclass
class Agency:
    """Everything an agent's turn is made of."""

    world: World
    server: OpenAIServer
    bell: Bell
    registry: ToolRegistry
    memories: Memories
    agents: Agents
    sessions: Sessions
    approvals: Approvals
    queue: SessionQueue
    thinking: Thinking
    calling: Calling
    ending: TurnEnding
    waiting: ApprovalWaiting
    shown_to: Person | None = None
    """Who sees the requests before they are decided; the admin unless a test says otherwise."""

    async def agent(self, who: Person | None = None, **fields: Any) -> AgentView:
        owner = who or self.world.root
        draft = {"name": f"agent {new_id()}", "tools": self.registry.names(), "model": MODEL, **fields}
        return await self.agents.create(owner.caller, AgentDraft.model_validate(draft))

    async def session(self, who: Person | None = None, **fields: Any) -> str:
        """With an agent of its own."""
        owner = who or self.world.root
        agent = await self.agent(owner, **fields)
        return (await self.sessions.create(owner.actor, SessionDraft(agent_id=agent.id))).id

    async def incognito(self, agent_id: str) -> str:
        draft = SessionDraft(agent_id=agent_id, incognito=True)
        return (await self.sessions.create(self.world.root.actor, draft)).id

    async def say(self, session_id: str, text: str, who: Person | None = None, **fields: Any) -> str:
        """The run that will answer."""
        draft = MessageDraft.model_validate({"text": text, **fields})
        return (await self.sessions.send((who or self.world.root).actor, session_id, draft)).run_id

    async def ask(self, session_id: str, text: str, decide: Decide | None = None, who: Person | None = None) -> Row:
        """Says it and runs the turn to its end."""
        run_id = await self.say(session_id, text, who)
        await self.run_all(session_id, decide)
        return await self.run(run_id)

    async def run_all(self, session_id: str, decide: Decide | None = None) -> list[str]:
        """Turn after turn until there is nothing to do; the runs in their order."""
        tenant, ran = self.world.root.actor.tenant, []
        while (chosen := await self.queue.next(tenant, session_id)).run_id is not None:
            await self.turn(TurnWork(tenant, chosen.run_id, session_id), decide)
            ran.append(chosen.run_id)
        return ran

    async def begin(self, work: TurnWork) -> None:
        async with self.world.database.begin(work.tenant) as transaction:
            assert await runs_store.claim(transaction, work.run_id, f"execution-{work.run_id}") is not None
            await turn_beginning.begin(transaction, work.run_id, MODEL)

    async def turn(self, work: TurnWork, decide: Decide | None = None) -> None:
        await self.begin(work)
        iteration = 0
        while True:
            end, iteration = await self._until_last_word(work, iteration, decide)
            if not (await self.ending.end(work, end)).get("steered"):
                return

    async def _until_last_word(self, work: TurnWork, iteration: int, decide: Decide | None) -> tuple[RunEnd, int]:
        try:
            while True:
                iteration += 1
                if await self._cancel_wished(work):
                    return RunEnd(state="cancelled"), iteration
                thought = await self.thinking.run(work, iteration, attempt=new_id())
                for call in thought.calls:
                    await self.call(work, call, decide)
                if thought.final:
                    return RunEnd(state="succeeded"), iteration
        except PermanentFailure as failure:
            error = {"code": failure.code, "detail": failure.detail, "retryable": False}
            return RunEnd(state="failed", error=error), iteration

    async def call(self, work: TurnWork, call: CallPlan, decide: Decide | None = None) -> None:
        if call.approval_id is not None:
            assert call.child_run_id is not None
            async with self.world.database.begin(work.tenant) as transaction:
                await runs_store.claim(transaction, call.child_run_id, f"execution-{call.child_run_id}")
            outcome = "expired" if decide is None else None
            if decide is not None:
                viewer = self.shown_to or self.world.root
                await decide(await self.approvals.get(viewer.actor, call.approval_id))
            await self.waiting.look(work.tenant, call.child_run_id, call.approval_id, outcome)
        below = call.child_run_id if call.delegated else None
        if below is not None:
            await self.turn(TurnWork(work.tenant, below), decide)
        await self.calling.run(work, call.step, call.approval_id, below)

    async def _cancel_wished(self, work: TurnWork) -> bool:
        async with self.world.database.begin(work.tenant) as transaction:
            return await runs_store.cancel_requested(transaction, work.run_id)

    # what stands afterwards

    async def run(self, run_id: str) -> Row:
        async with self.world.database.begin(self.world.root.actor.tenant) as transaction:
            row = await runs_store.get(transaction, run_id)
        assert row is not None
        return row

    async def children(self, run_id: str) -> list[Row]:
        """Runs of this run, requests for approval left out."""
        async with self.world.database.begin(self.world.root.actor.tenant) as transaction:
            statement = select(runs).where(runs.c.parent_id == run_id, runs.c.kind == "turn").order_by(runs.c.id)
            return list(await transaction.all(statement))

    async def config(self, run_id: str) -> dict[str, Any]:
        """What a turn works under."""
        async with self.world.database.begin(self.world.root.actor.tenant) as transaction:
            row = await turns_store.get(transaction, run_id)
        assert row is not None
        return dict(row["config"])

    async def events(self, run_id: str, type: str | None = None) -> list[RunEvent]:
        found = await self.world.events(run_id)
        return [event for event in found if type in (None, event.type)]

    async def messages(self, session_id: str, who: Person | None = None) -> list[MessageView]:
        return await self.sessions.messages((who or self.world.root).actor, session_id, 0, 100)

    def decision(self, word: str, who: Person | None = None, **fields: Any) -> Decide:
        """Decides each request in this way."""

        async def decide(request: ApprovalView) -> None:
            draft = Decision.model_validate({"decision": word, **fields})
            await self.approvals.decide((who or self.world.root).actor, request.id, draft)

        return decide

    @staticmethod
    def ended(state: str = "succeeded") -> RunEnd:
        return RunEnd.model_validate({"state": state})

    def shown(self, number: int = -1) -> list[dict[str, Any]]:
        """The messages of a request that the model was sent."""
        messages: list[dict[str, Any]] = self.server.received[number].body["messages"]
        return messages

    def shown_text(self, number: int = -1) -> str:
        return json.dumps(self.shown(number), ensure_ascii=False)

    def plan(self, *replies: Reply) -> None:
        self.server.plan("plan", *replies)


def build_agency(world: World, server: OpenAIServer, sandboxes: Connect | None = None, **limits: Any) -> Agency:
    database, agent_settings = world.database, AgentSettings(**limits)
    settings = world.settings.model_copy(update={"agents": agent_settings})
    bell, memories = Bell(), Memories(database, world.model, agent_settings)
    registry = build_registry(database, world.blobs, world.reception, world.finding, sandboxes, memories, settings)
    registry.add(bell)
    env = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "scripted"}
    models = chat_models(settings, env, 30)
    return Agency(
        world=world,
        server=server,
        bell=bell,
        registry=registry,
        memories=memories,
        agents=Agents(database, registry),
        sessions=Sessions(database, _leave_it_queued, agent_settings, lambda: None),
        approvals=Approvals(database, _leave_it_queued, registry),
        queue=SessionQueue(database),
        thinking=Thinking(
            database,
            models,
            registry,
            Planning(registry, agent_settings),
            Recalling(database, memories),
            agent_settings,
            token_rows_per_s=20,
            failpoint=_no_failpoint,
        ),
        calling=Calling(database, registry, agent_settings, _no_failpoint),
        ending=TurnEnding(database, settings.answers),
        waiting=ApprovalWaiting(database),
    )
