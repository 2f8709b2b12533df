"""Session: works off a session's messages, one turn at a time. What there is to do stands in rows; a signal only wakes it."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ChildWorkflowError, WorkflowAlreadyStartedError

with workflow.unsafe.imports_passed_through():
    from activities.agent_activities import AgentActivities
    from schemas.workflow_contracts import (
        AGENT_TURN,
        NextTurn,
        SessionInput,
        TurnInput,
        WorkflowEnd,
        WorkflowInput,
    )
    from workflows.activity_options import BOOKKEEPING
    from workflows.child_runs import start_child
    from workflows.run_lifecycle import RunLifecycle, WakeableRun

IDLE = timedelta(minutes=10)
"""How long a session with nothing to do stays open; a later message starts it again."""
LOOK_AGAIN_S = 2.0
"""Between two looks at a turn that was begun by an earlier execution of this session."""


@workflow.defn(name="Session")
class Session(WakeableRun):
    """An entity: it ends when it is idle and continues as new when its history grows."""

    @workflow.init
    def __init__(self, input: SessionInput) -> None:
        as_run = WorkflowInput(tenant=input.tenant, run_id=input.session_id)
        self._lifecycle = RunLifecycle(as_run, f"Session {input.session_id}", tells_row=False)

    @workflow.run
    async def run(self, input: SessionInput) -> WorkflowEnd:
        while True:
            self._lifecycle.woken = False
            chosen = await self._lifecycle.step_of(
                NextTurn, AgentActivities.next_turn, input, BOOKKEEPING, "look for a message", patient=True
            )
            if chosen.run_id is not None:
                await self._turn(input, chosen.run_id, chosen)
            elif not await self._woken():
                return WorkflowEnd(state="idle")
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(input)

    async def _turn(self, input: SessionInput, run_id: str, chosen: NextTurn) -> None:
        """Runs the turn to its end. One that runs already, or is another execution's, is looked at again after a while."""
        self._lifecycle.show("running")
        turn = TurnInput(
            tenant=input.tenant, run_id=run_id, session_id=input.session_id, traceparent=chosen.traceparent
        )
        try:
            child = await start_child(AGENT_TURN, turn, f"turn:{input.tenant}:{run_id}", f"Turn {run_id}")
            end = await child
            if end.state != "not_ours":
                return
        except WorkflowAlreadyStartedError:
            workflow.logger.info("turn %s is under way already (adopted: %s)", run_id, chosen.adopted)
        except ChildWorkflowError as error:
            workflow.logger.warning("turn %s left no end: %s", run_id, error.cause)
            await self._lifecycle.step(AgentActivities.fail_turn, turn, BOOKKEEPING, "record the loss", patient=True)
            return
        await self._lifecycle.pause(LOOK_AGAIN_S, "look at the turn again", patient=True)

    async def _woken(self) -> bool:
        """False when nothing came for as long as an idle session stays open."""
        self._lifecycle.show("waiting", waiting_for="message")
        try:
            await self._lifecycle.until(
                lambda: self._lifecycle.woken, timeout_s=IDLE.total_seconds(), summary="wait for a message"
            )
        except TimeoutError:
            return self._lifecycle.woken
        return True
