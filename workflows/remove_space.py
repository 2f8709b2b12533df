"""RemoveSpace: a window of documents at a time is removed, then the space itself."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.removal_activities import RemovalActivities
    from schemas.runs import RunEnd
    from schemas.workflow_contracts import FinishInput, RemoveSpaceInput, WorkflowEnd
    from workflows.activity_options import BOOKKEEPING, STAGE
    from workflows.run_lifecycle import RunLifecycle, StepFailed, UnstoppableRun

LOOK_AGAIN_S = 1.0
"""How long a window of removals is given before it is looked at again."""


@workflow.defn(name="RemoveSpace")
class RemoveSpace(UnstoppableRun):
    """Each round removes a window of documents; the history starts anew when the server suggests it."""

    @workflow.init
    def __init__(self, input: RemoveSpaceInput) -> None:
        self._lifecycle = RunLifecycle(input, f"Remove space {input.space_id}")

    @workflow.run
    async def run(self, input: RemoveSpaceInput) -> WorkflowEnd:
        if not await self._lifecycle.claim():
            return WorkflowEnd(state="not_ours")
        end, removed = RunEnd(state="succeeded"), input.removed
        try:
            while True:
                window = await self._lifecycle.step(
                    RemovalActivities.bury_window, input, STAGE, "remove a window of documents", patient=True
                )
                removed += window.counts.get("buried", 0)
                if not window.counts.get("left", 0):
                    break
                if workflow.info().is_continue_as_new_suggested():
                    workflow.continue_as_new(input.model_copy(update={"removed": removed}))
                await self._lifecycle.pause(LOOK_AGAIN_S, "look at the window again", patient=True)
            await self._lifecycle.step(RemovalActivities.forget_space, input, STAGE, "forget the space", patient=True)
        except StepFailed as failed:
            end = RunEnd(state="failed", error=failed.error)
        finish = FinishInput(**input.model_dump(include={"tenant", "run_id", "traceparent"}), end=end)
        await self._lifecycle.step(RemovalActivities.finish, finish, BOOKKEEPING, "finish", patient=True)
        self._lifecycle.show(end.state)
        return WorkflowEnd(state=end.state, detail=f"{removed} documents")
