"""IngestDocument: from received bytes to a searchable, ready version of a document."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.ingest_activities import IngestActivities
    from schemas.runs import RunEnd
    from schemas.workflow_contracts import (
        CANCEL_SIGNAL,
        WAKE_SIGNAL,
        CancelRequest,
        DiscardInput,
        FinishIngestInput,
        IngestInput,
        WorkflowEnd,
    )
    from workflows.activity_options import BOOKKEEPING, STAGE
    from workflows.run_lifecycle import RunLifecycle, StepFailed

STAGES = (
    ("received", IngestActivities.fetch, "fetch"),
    ("parsing", IngestActivities.parse, "parse"),
    ("chunking", IngestActivities.chunk, "chunk"),
    ("embedding", IngestActivities.embed, "embed"),
    ("indexing", IngestActivities.index, "index"),
    ("indexing", IngestActivities.publish, "publish"),
    ("indexing", IngestActivities.sweep, "sweep"),
    ("enriching", IngestActivities.enrich, "enrich"),
)
"""Each stage finds what an earlier run of it left, so starting at a stage means: do not repeat those before it."""


@workflow.defn(name="IngestDocument")
class IngestDocument:
    """Stages in order; what cannot be published leaves nothing behind."""

    @workflow.init
    def __init__(self, input: IngestInput) -> None:
        self._lifecycle = RunLifecycle(input, f"Ingest document {input.document_id} v{input.version}")
        self._stage = "received"

    @workflow.signal(name=CANCEL_SIGNAL)
    def cancel(self, _: CancelRequest) -> None:
        self._lifecycle.request_cancel()

    @workflow.signal(name=WAKE_SIGNAL)
    def wake(self) -> None:
        self._lifecycle.woken = True

    @workflow.run
    async def run(self, input: IngestInput) -> WorkflowEnd:
        if not await self._lifecycle.claim():
            return WorkflowEnd(state="not_ours")
        status, end = "done", RunEnd(state="succeeded")
        try:
            status = await self._stages(input)
            end = self._lifecycle.end_of(status)
        except StepFailed as failed:
            end = RunEnd(state="failed", error={**failed.error, "stage": self._stage})
        if status in ("cancelled", "superseded") or end.state == "failed":
            await self._clean_up(input, status)
        finish = FinishIngestInput(**input.model_dump(), end=end, superseded=status == "superseded")
        await self._lifecycle.step(IngestActivities.finish, finish, BOOKKEEPING, "finish", patient=True)
        self._lifecycle.show(end.state)
        return WorkflowEnd(state=end.state, detail=status)

    async def _stages(self, input: IngestInput) -> str:
        """The status of the last stage that ran: `done` after all of them."""
        for stage, method, name in STAGES[_first_stage(input.from_stage) :]:
            self._stage = stage
            result = await self._lifecycle.step(method, input, STAGE, name)
            if result.status != "done":
                return result.status
        return "done"

    async def _clean_up(self, input: IngestInput, status: str) -> None:
        """Nothing of a version that will not be published stays in an index; a failure here must not hide the first."""
        discard = DiscardInput(**input.model_dump(), drop_chunks=status == "cancelled")
        try:
            await self._lifecycle.step(IngestActivities.discard, discard, STAGE, "leave no debris", patient=True)
        except StepFailed as failed:
            workflow.logger.warning("clean-up failed: %s", failed.error["detail"])


def _first_stage(from_stage: str | None) -> int:
    names = [stage for stage, _, _ in STAGES]
    return names.index(from_stage) if from_stage in names else 0
