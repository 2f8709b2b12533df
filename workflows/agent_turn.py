"""AgentTurn: think, call, think again, until the model has its last word or a bound is reached."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import groupby

from temporalio import workflow
from temporalio.exceptions import ChildWorkflowError, WorkflowAlreadyStartedError

with workflow.unsafe.imports_passed_through():
    from activities.agent_activities import AgentActivities
    from schemas.runs import RunEnd
    from schemas.tools import CallPlan
    from schemas.workflow_contracts import (
        AGENT_TURN,
        ASK_APPROVAL,
        ApprovalInput,
        CallInput,
        FinishTurnInput,
        StepResult,
        ThinkInput,
        Thought,
        TurnInput,
        WorkflowContract,
        WorkflowEnd,
        WorkflowInput,
    )
    from workflows.activity_options import BOOKKEEPING, INTERACTIVE
    from workflows.child_runs import start_child
    from workflows.run_lifecycle import CancellableRun, RunLifecycle, StepFailed, execution_id

LOOK_AGAIN_S = 1.0
"""Between two looks at a request whose own workflow is gone or not ours."""


@workflow.defn(name="AgentTurn")
class AgentTurn(CancellableRun):
    """Decides what comes next; texts, arguments and outcomes stand in rows."""

    @workflow.init
    def __init__(self, input: TurnInput) -> None:
        self._lifecycle = RunLifecycle(input, f"Turn of session {input.session_id or '-'}")
        self._iteration = 0
        self._asking = 0

    @workflow.run
    async def run(self, input: TurnInput) -> WorkflowEnd:
        while True:
            try:
                status = await self._until_last_word(input)
                if status == "not_ours":
                    self._lifecycle.show("not_ours")
                    return WorkflowEnd(state="not_ours")
                end = self._lifecycle.end_of(status)
            except StepFailed as failed:
                end = RunEnd(state="failed", error=failed.error)
            finish = FinishTurnInput(**input.model_dump(), end=end)
            finished = await self._lifecycle.step(AgentActivities.finish, finish, BOOKKEEPING, "finish", patient=True)
            if finished.status != "steered":
                self._lifecycle.show(end.state)
                return WorkflowEnd(state=end.state)

    async def _until_last_word(self, input: TurnInput) -> str:
        """The status that ends it: `done` when the model has nothing more to do."""
        while True:
            self._iteration += 1
            think = ThinkInput(**input.model_dump(), iteration=self._iteration, execution_id=execution_id())
            thought = await self._lifecycle.step_of(
                Thought, AgentActivities.think, think, INTERACTIVE, f"think {self._iteration}"
            )
            if thought.status != "done":
                return thought.status
            status = await self._make(input, thought.calls)
            if status != "done" or thought.final:
                return status

    async def _make(self, input: TurnInput, calls: Sequence[CallPlan]) -> str:
        """In the model's order; neighbours that may stand beside others are made together. Requests go out at once."""
        asked = {call.step: asyncio.ensure_future(self._asked(input, call)) for call in calls if call.approval_id}
        for alone, group in groupby(calls, key=lambda call: call.alone or call.approval_id is not None):
            if not alone:
                made = await asyncio.gather(*(self._call(input, call) for call in group))
            else:
                made = [await self._after(asked.get(call.step), input, call) for call in group]
            stopped = next((each.status for each in made if each.status != "done"), None)
            if stopped is not None:
                return stopped
        return "done"

    async def _after(self, asked: asyncio.Future[None] | None, input: TurnInput, call: CallPlan) -> StepResult:
        if asked is not None:
            await asked
        return await self._call(input, call)

    async def _call(self, input: TurnInput, call: CallPlan) -> StepResult:
        made = CallInput(
            **input.model_dump(),
            step=call.step,
            tool=call.tool,
            approval_id=call.approval_id,
            child_run_id=call.child_run_id,
        )
        if call.delegated:
            await self._delegated(input, call)
        while True:
            result = await self._lifecycle.step(AgentActivities.call_tool, made, INTERACTIVE, call.tool)
            if result.status != "undecided":
                return result
            await self._lifecycle.pause(LOOK_AGAIN_S, "look again", patient=False)
            await (self._delegated(input, call) if call.delegated else self._asked(input, call))

    async def _asked(self, input: TurnInput, call: CallPlan) -> None:
        """Waits until the request is over, or this turn is cancelled. What came of it stands in its row."""
        assert call.approval_id is not None
        assert call.child_run_id is not None
        ask = ApprovalInput(
            tenant=input.tenant,
            run_id=call.child_run_id,
            traceparent=input.traceparent,
            approval_id=call.approval_id,
            expires_at=call.expires_at or "",
            tool=call.tool,
        )
        self._asking += 1
        self._lifecycle.show("waiting", waiting_for="approval")
        try:
            await self._await_child(
                ASK_APPROVAL, ask, f"approval:{input.tenant}:{call.approval_id}", f"Approval of {call.tool}"
            )
        finally:
            self._asking -= 1
            if not self._asking:
                self._lifecycle.show("running")

    async def _delegated(self, input: TurnInput, call: CallPlan) -> None:
        """Waits until the sub-agent's turn has ended, or this one is cancelled. One that left no end is recorded as lost."""
        assert call.child_run_id is not None
        below = TurnInput(tenant=input.tenant, run_id=call.child_run_id, traceparent=input.traceparent)
        ended = await self._await_child(
            AGENT_TURN, below, f"turn:{input.tenant}:{call.child_run_id}", f"Turn {call.child_run_id}"
        )
        if not ended:
            await self._lifecycle.step(AgentActivities.fail_turn, below, BOOKKEEPING, "record the loss", patient=True)

    async def _await_child(self, contract: WorkflowContract, input: WorkflowInput, id: str, summary: str) -> bool:
        """False when it closed without an end of its own. One that runs already is left to its row."""
        try:
            child = await start_child(contract, input, id, summary)
            await self._lifecycle.until(lambda: child.done() or self._lifecycle.cancel_requested)
            if child.done():
                await child
        except WorkflowAlreadyStartedError:
            workflow.logger.info("%s runs already", id)
        except ChildWorkflowError as error:
            workflow.logger.warning("%s left no end: %s", id, error.cause)
            return False
        return True
