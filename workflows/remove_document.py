"""RemoveDocument: the tombstone is set; this empties each store and proves it empty."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.removal_activities import RemovalActivities
    from schemas.runs import RunEnd
    from schemas.workflow_contracts import FinishInput, RemoveDocumentInput, WorkflowEnd
    from workflows.activity_options import BOOKKEEPING, STAGE
    from workflows.run_lifecycle import RunLifecycle, StepFailed, UnstoppableRun

STEPS = (
    (RemovalActivities.empty_indexes, "empty the indexes"),
    (RemovalActivities.empty_blobs, "empty the blob store"),
    (RemovalActivities.empty_rows, "empty the rows"),
)

FIRST_LOOK_S = 0.2
LONGEST_LOOK_S = 5.0


@workflow.defn(name="RemoveDocument")
class RemoveDocument(UnstoppableRun):
    """A removal cannot be cancelled and waits for an engine without end: what people deleted must go."""

    @workflow.init
    def __init__(self, input: RemoveDocumentInput) -> None:
        self._lifecycle = RunLifecycle(input, f"Remove document {input.document_id}")

    @workflow.run
    async def run(self, input: RemoveDocumentInput) -> WorkflowEnd:
        if not await self._lifecycle.claim():
            return WorkflowEnd(state="not_ours")
        end = RunEnd(state="succeeded")
        try:
            await self._ingests_closed(input)
            for method, name in STEPS:
                await self._lifecycle.step(method, input, STAGE, name, patient=True)
        except StepFailed as failed:
            end = RunEnd(state="failed", error=failed.error)
        finish = FinishInput(**input.model_dump(include={"tenant", "run_id", "traceparent"}), end=end)
        await self._lifecycle.step(RemovalActivities.finish, finish, BOOKKEEPING, "finish", patient=True)
        self._lifecycle.show(end.state)
        return WorkflowEnd(state=end.state)

    async def _ingests_closed(self, input: RemoveDocumentInput) -> None:
        """Cancelled ingests close within a second or so; the timer costs no worker slot meanwhile."""
        wait_s = FIRST_LOOK_S
        while True:
            result = await self._lifecycle.step(
                RemovalActivities.close_ingests, input, STAGE, "look for open ingests", patient=True
            )
            if not result.counts.get("open", 0):
                return
            await self._lifecycle.pause(wait_s, "look for open ingests again", patient=True)
            wait_s = min(LONGEST_LOOK_S, wait_s * 2)
