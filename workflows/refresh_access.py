"""RefreshAccess: rewrites a document's readers in both indexes, as they are when it runs."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.removal_activities import RemovalActivities
    from schemas.runs import RunEnd
    from schemas.workflow_contracts import FinishInput, RefreshAccessInput, WorkflowEnd
    from workflows.activity_options import BOOKKEEPING, STAGE
    from workflows.run_lifecycle import CancellableRun, RunLifecycle, StepFailed


@workflow.defn(name="RefreshAccess")
class RefreshAccess(CancellableRun):
    """Runs behind a change of readers that holds already."""

    @workflow.init
    def __init__(self, input: RefreshAccessInput) -> None:
        self._lifecycle = RunLifecycle(input, f"Refresh readers of document {input.document_id}")

    @workflow.run
    async def run(self, input: RefreshAccessInput) -> WorkflowEnd:
        if not await self._lifecycle.claim():
            return WorkflowEnd(state="not_ours")
        try:
            result = await self._lifecycle.step(RemovalActivities.refresh_access, input, STAGE, "rewrite the readers")
            end = self._lifecycle.end_of(result.status)
        except StepFailed as failed:
            end = RunEnd(state="failed", error=failed.error)
        finish = FinishInput(**input.model_dump(include={"tenant", "run_id", "traceparent"}), end=end)
        await self._lifecycle.step(RemovalActivities.finish, finish, BOOKKEEPING, "finish", patient=True)
        self._lifecycle.show(end.state)
        return WorkflowEnd(state=end.state)
