"""IngestDocument as somebody might change it without a patch: under the released name, another order of stages."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.ingest_activities import IngestActivities
    from schemas.workflow_contracts import BeginIngestInput, IngestInput, WorkflowEnd
    from workflows.activity_options import STAGE
    from workflows.run_lifecycle import RunLifecycle, execution_id


@workflow.defn(name="IngestDocument")
class ReorderedIngest:
    """Chunks before it reads."""

    @workflow.init
    def __init__(self, input: IngestInput) -> None:
        self._lifecycle = RunLifecycle(input, "Reordered")

    @workflow.run
    async def run(self, input: IngestInput) -> WorkflowEnd:
        begin = BeginIngestInput(**input.model_dump(), execution_id=execution_id())
        await self._lifecycle.step(IngestActivities.chunk, input, STAGE, "chunk")
        await self._lifecycle.step(IngestActivities.read, begin, STAGE, "read")
        return WorkflowEnd(state="succeeded")
