"""The steps of AnswerQuestion."""

from __future__ import annotations

from temporalio import activity

from activities.run_activities import claim_run, end_run
from activities.step_runner import StepRunner
from schemas.workflow_contracts import AnswerInput, FinishInput, StepResult
from services.answers.generating import Generating
from services.answers.retrieving import AnswerWork, Retrieving
from services.stores.database import Database


class AnswerActivities:
    """Retrieve, generate, finish."""

    def __init__(
        self, database: Database, runner: StepRunner, *, retrieving: Retrieving, generating: Generating
    ) -> None:
        self._database = database
        self._runner = runner
        self._retrieving = retrieving
        self._generating = generating

    @activity.defn(name="retrieve_passages")
    async def retrieve(self, input: AnswerInput) -> StepResult:
        """Claims the run as well: a person waits, and each step more costs them a round."""
        execution_id = activity.info().workflow_run_id or ""
        claimed = await claim_run(self._database, self._runner, input, execution_id)
        if claimed.status != "done":
            return claimed
        return await self._runner.run("retrieve", input, lambda: self._retrieving.run(_work(input)))

    @activity.defn(name="generate_answer")
    async def generate(self, input: AnswerInput) -> StepResult:
        info = activity.info()
        attempt = f"{info.workflow_run_id}/{info.attempt}"
        return await self._runner.run("generate", input, lambda: self._generating.run(_work(input), attempt))

    @activity.defn(name="finish_answer")
    async def finish(self, input: FinishInput) -> StepResult:
        async def work() -> None:
            await end_run(self._database, input, input.end)

        return await self._runner.run("finish_answer", input, work, cancellable=False)


def _work(input: AnswerInput) -> AnswerWork:
    return AnswerWork(input.tenant, input.run_id, input.answer_id)
