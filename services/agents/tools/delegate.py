"""Tool `delegate`: hands a self-contained piece of work to an agent below this one and takes back what it found."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, Field

from schemas.identifiers import run_stream
from schemas.settings import AgentSettings
from schemas.tools import ToolOutcome, ToolSpec, Used
from services.agents.tool import About, CallContext, Delegation, ToolFailed, schema_of
from services.agents.transcript import read_transcript
from services.retrieval.citations import read_citations, supplied_numbers
from services.stores import run_event_log, runs_store, sources_store, turns_store
from services.stores.database import Database

NAME = "delegate"
LONGEST_S = 24 * 3600


class Arguments(BaseModel):
    """What the model sends."""

    goal: str = Field(min_length=1, max_length=20_000)
    inputs: str | dict[str, Any] | list[Any] = Field(
        "", description="all that is needed: the sub-agent sees nothing else"
    )
    done_when: str = Field(min_length=1, max_length=5_000)
    tools: list[str] = Field(default_factory=list, description="tools it may use, of your own")


class DelegateTool:
    """The agent below has the same rights, no history, tools of its parent's list, and a slice of its parent's budget."""

    spec = ToolSpec(
        name=NAME,
        description="Hands a self-contained task to another agent, which works on its own and reports back.",
        parameters=schema_of(Arguments),
        risk="read",
        timeout_s=LONGEST_S,
    )

    def __init__(self, database: Database, settings: AgentSettings) -> None:
        self._database = database
        self._settings = settings

    async def about(self, context: CallContext, arguments: dict[str, Any]) -> About:
        return About(preview=str(arguments["goal"]))

    def delegation(self, context: CallContext, arguments: dict[str, Any]) -> Delegation:
        """The brief of the sub-agent's turn. ToolFailed for tools that the parent has not, or when it would be too deep."""
        asked = Arguments.model_validate(arguments)
        if context.depth >= self._settings.depth:
            raise ToolFailed(
                f"Sub-agents of this depth cannot delegate (PERDURE_AGENTS__DEPTH={self._settings.depth})."
            )
        if context.delegations >= self._settings.fan_out:
            raise ToolFailed(
                f"This turn has delegated often enough (PERDURE_AGENTS__FAN_OUT={self._settings.fan_out})."
            )
        wider = [tool for tool in asked.tools if tool not in context.tools]
        if wider:
            raise ToolFailed(f"You cannot delegate the tool '{wider[0]}': it is not one of yours.")
        inputs = asked.inputs if isinstance(asked.inputs, str) else json.dumps(asked.inputs, ensure_ascii=False)
        return Delegation(
            brief={"goal": asked.goal, "inputs": inputs, "done_when": asked.done_when}, tools=list(asked.tools)
        )

    async def call(self, context: CallContext, arguments: dict[str, Any]) -> ToolOutcome:
        """What the sub-agent came to; it has ended by now."""
        assert context.child_run_id is not None
        async with self._database.begin(context.tenant) as transaction:
            run = await runs_store.get(transaction, context.child_run_id)
            transcript = read_transcript(await turns_store.steps(transaction, context.child_run_id))
            said = transcript.text or await run_event_log.text_so_far(transaction, context.child_run_id)
            used = await sources_store.of_records(transaction, [run_stream(context.child_run_id)])
        state = str(run["state"]) if run is not None else "lost"
        passages = transcript.all_passages()
        cited = set(read_citations(said, supplied_numbers(passages)).used)
        why = f" ({run['error']['code']})" if run is not None and run["error"] else ""
        return ToolOutcome(
            ok=state == "succeeded",
            text=f"The agent {state}{why}. It reported:\n\n{said or '(nothing)'}",
            summary=f"the agent {state}",
            passages=[passage for passage in passages if passage.n in cited],
            used=[Used(document_id=document, version=version) for document, version in used],
            result_ref=run_stream(context.child_run_id),
            spent=transcript.spent(),
        )
