"""The steps of AnswerQuestion."""

from __future__ import annotations

from temporalio import activity

from activities.run_activities import claiming, end_run
from activities.step_runner import Step, StepRunner
from schemas.workflow_contracts import AnswerInput, BeginAnswerInput, FinishInput, StepResult
from services.answers.generating import Generating
from services.answers.retrieving import AnswerWork, Retrieving
from services.stores.database import Database


class AnswerActivities:
    """The answer in one go, and its end."""

    def __init__(
        self, database: Database, runner: StepRunner, *, retrieving: Retrieving, generating: Generating
    ) -> None:
        self._database = database
        self._runner = runner
        self._retrieving = retrieving
        self._generating = generating

    @activity.defn(name="answer_question")
    async def answer(self, input: BeginAnswerInput) -> StepResult:
        """Claims, retrieves and generates: a person waits, and each way back to the workflow costs them a round.

        Each step stores its result, so another attempt goes on where this one was cut.
        """
        info = activity.info()
        attempt = f"{info.workflow_run_id}/{info.attempt}"
        return await self._runner.run_all(
            input,
            claiming(self._database, self._runner, input, input.execution_id),
            Step("retrieve", lambda: self._retrieving.run(_work(input))),
            Step("generate", lambda: self._generating.run(_work(input), attempt)),
        )

    @activity.defn(name="finish_answer")
    async def finish(self, input: FinishInput) -> StepResult:
        async def work() -> None:
            await end_run(self._database, input, input.end)

        return await self._runner.run("finish_answer", input, work, cancellable=False)


def _work(input: AnswerInput) -> AnswerWork:
    return AnswerWork(input.tenant, input.run_id, input.answer_id)
