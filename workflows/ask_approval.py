"""AskApproval: waits for a person, for days if it must. The decision is a row; a signal only wakes the look at it."""

from __future__ import annotations

from datetime import datetime, timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.agent_activities import AgentActivities
    from schemas.runs import RunEnd
    from schemas.workflow_contracts import ApprovalInput, ApprovalStepInput, StepResult, WorkflowEnd
    from workflows.activity_options import BOOKKEEPING
    from workflows.run_lifecycle import CancellableRun, RunLifecycle, execution_id

REMINDERS = (timedelta(days=1), timedelta(days=3))


@workflow.defn(name="AskApproval")
class AskApproval(CancellableRun):
    """Looks, waits, looks again. When time is up, or the run is cancelled, that is written by the same look."""

    @workflow.init
    def __init__(self, input: ApprovalInput) -> None:
        self._lifecycle = RunLifecycle(input, f"Approval of {input.tool or 'a call'} · {input.approval_id}")

    @workflow.run
    async def run(self, input: ApprovalInput) -> WorkflowEnd:
        expires = datetime.fromisoformat(input.expires_at)
        reminders = [workflow.now() + after for after in REMINDERS if workflow.now() + after < expires]
        outcome: str | None = None
        while True:
            self._lifecycle.woken = False
            looked = await self._look(input, outcome)
            if looked.status == "not_ours":
                self._lifecycle.show("not_ours")
                return WorkflowEnd(state="not_ours")
            if looked.status == "over":
                end = _end_of(looked.detail)
                self._lifecycle.show(end.state)
                return WorkflowEnd(state=end.state, detail=looked.detail)
            outcome = await self._wait(input, expires, reminders)

    async def _look(self, input: ApprovalInput, outcome: str | None) -> StepResult:
        step = ApprovalStepInput(**input.model_dump(), execution_id=execution_id(), outcome=outcome)
        summary = "look at the request" if outcome is None else f"write that it is {outcome}"
        return await self._lifecycle.step(AgentActivities.look_at_approval, step, BOOKKEEPING, summary, patient=True)

    async def _wait(self, input: ApprovalInput, expires: datetime, reminders: list[datetime]) -> str | None:
        """What to write next: nothing when somebody decided, else why the request is over."""
        self._lifecycle.show("waiting", waiting_for="approval")
        while not self._stirred():
            due = min([*reminders, expires])
            try:
                await self._lifecycle.until(
                    self._stirred,
                    timeout_s=max(0.0, (due - workflow.now()).total_seconds()),
                    summary="until the request expires" if due == expires else "until a reminder is due",
                )
            except TimeoutError:
                if self._stirred():  # in the very task in which time was up
                    break
                if due == expires:
                    return "expired"
                reminders.remove(due)
                step = ApprovalStepInput(**input.model_dump(), execution_id=execution_id())
                await self._lifecycle.step(AgentActivities.remind, step, BOOKKEEPING, "remind", patient=True)
        return None if self._lifecycle.woken else "cancelled"

    def _stirred(self) -> bool:
        return self._lifecycle.woken or self._lifecycle.cancel_requested


def _end_of(state: str | None) -> RunEnd:
    if state == "expired":
        return RunEnd(state="expired")
    return RunEnd(state="cancelled" if state == "cancelled" else "succeeded")
