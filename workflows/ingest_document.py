"""IngestDocument: from received bytes to a searchable, ready version of a document."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.ingest_activities import IngestActivities
    from schemas.runs import RunEnd
    from schemas.workflow_contracts import (
        INGEST_STEPS,
        BeginIngestInput,
        DiscardInput,
        FinishIngestInput,
        IngestInput,
        WorkflowEnd,
        ingest_steps_from,
    )
    from workflows.activity_options import BOOKKEEPING, STAGE
    from workflows.run_lifecycle import CancellableRun, RunLifecycle, StepFailed, execution_id

AFTER_READING = (
    ("chunk", IngestActivities.chunk),
    ("embed", IngestActivities.embed),
    ("publish", IngestActivities.publish),
)
"""Each finds what an earlier run of it left. The last one is due whatever stage a retry starts at."""


@workflow.defn(name="IngestDocument")
class IngestDocument(CancellableRun):
    """Steps in order; what cannot be published leaves nothing behind."""

    @workflow.init
    def __init__(self, input: IngestInput) -> None:
        self._lifecycle = RunLifecycle(input, f"Ingest document {input.document_id} v{input.version}")
        self._step = "fetch"

    @workflow.run
    async def run(self, input: IngestInput) -> WorkflowEnd:
        status, end = "done", RunEnd(state="succeeded")
        try:
            status = await self._steps(input)
            end = self._lifecycle.end_of(status)
        except StepFailed as failed:
            stage = INGEST_STEPS.get(failed.step or "", INGEST_STEPS[self._step])
            end = RunEnd(state="failed", error={**failed.error, "stage": stage})
        if status in ("cancelled", "superseded") or end.state == "failed":
            status = await self._clean_up(input, status)
        if status == "not_ours":
            self._lifecycle.show("not_ours")
            return WorkflowEnd(state="not_ours")
        finish = FinishIngestInput(**input.model_dump(), end=end, superseded=status == "superseded")
        await self._lifecycle.step(IngestActivities.finish, finish, BOOKKEEPING, "finish", patient=True)
        self._lifecycle.show(end.state)
        return WorkflowEnd(state=end.state, detail=status)

    async def _steps(self, input: IngestInput) -> str:
        """The status of the last step: `done` after all of them. A retry leaves out what stands before its stage."""
        due = ingest_steps_from(input.from_stage)
        begin = BeginIngestInput(**input.model_dump(), execution_id=execution_id())
        result = await self._lifecycle.step(IngestActivities.read, begin, STAGE, "read")
        for name, method in AFTER_READING:
            if result.status == "done" and (name in due or name == "publish"):
                self._step = name
                result = await self._lifecycle.step(method, input, STAGE, name)
        return result.status

    async def _clean_up(self, input: IngestInput, status: str) -> str:
        """Nothing of a version that will not be published stays in an index; a failure here must not hide the first.

        Gives the status to go on with. It claims the run too, for a cancel that came before the first step could.
        """
        drop_chunks = status == "cancelled"
        discard = DiscardInput(**input.model_dump(), execution_id=execution_id(), drop_chunks=drop_chunks)
        try:
            result = await self._lifecycle.step(
                IngestActivities.discard, discard, STAGE, "leave no debris", patient=True
            )
        except StepFailed as failed:
            workflow.logger.warning("clean-up failed: %s", failed.error["detail"])
            return status
        return "not_ours" if result.status == "not_ours" else status
