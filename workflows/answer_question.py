"""AnswerQuestion: passages, then a cited answer or a plain "not in the documents", streamed as it is made."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.answer_activities import AnswerActivities
    from schemas.runs import RunEnd
    from schemas.workflow_contracts import AnswerInput, BeginAnswerInput, FinishInput, WorkflowEnd
    from workflows.activity_options import BOOKKEEPING, INTERACTIVE
    from workflows.run_lifecycle import CancellableRun, RunLifecycle, StepFailed, execution_id


@workflow.defn(name="AnswerQuestion")
class AnswerQuestion(CancellableRun):
    """A person waits: one step and an end."""

    @workflow.init
    def __init__(self, input: AnswerInput) -> None:
        self._lifecycle = RunLifecycle(input, f"Answer {input.answer_id}")

    @workflow.run
    async def run(self, input: AnswerInput) -> WorkflowEnd:
        self._lifecycle.show("running")
        begin = BeginAnswerInput(**input.model_dump(), execution_id=execution_id())
        try:
            answered = await self._lifecycle.step(AnswerActivities.answer, begin, INTERACTIVE, "answer")
            if answered.status == "not_ours":
                self._lifecycle.show("not_ours")
                return WorkflowEnd(state="not_ours")
            end = self._lifecycle.end_of(answered.status)
        except StepFailed as failed:
            end = RunEnd(state="failed", error=failed.error)
        finish = FinishInput(**input.model_dump(include={"tenant", "run_id", "traceparent"}), end=end)
        await self._lifecycle.step(AnswerActivities.finish, finish, BOOKKEEPING, "finish", patient=True)
        self._lifecycle.show(end.state)
        return WorkflowEnd(state=end.state)
