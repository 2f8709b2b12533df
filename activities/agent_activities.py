"""The steps of Session, AgentTurn and AskApproval."""

from __future__ import annotations

from itertools import takewhile

from temporalio import activity

from activities.run_activities import claim_run, claiming, end_run
from activities.step_runner import Step, StepRunner
from schemas.runs import RunEnd
from schemas.workflow_contracts import (
    ApprovalStepInput,
    CallInput,
    FinishTurnInput,
    NextTurn,
    SessionInput,
    StepResult,
    ThinkInput,
    Thought,
    TurnInput,
    WorkflowInput,
)
from services.agents import turn_beginning
from services.agents.approval_waiting import ApprovalWaiting
from services.agents.calling import UNDECIDED, Calling
from services.agents.session_queue import SessionQueue
from services.agents.thinking import Thinking, ThoughtPlan
from services.agents.transcript import think_step
from services.agents.turn_ending import STEERED, TurnEnding
from services.agents.turn_reading import TurnWork
from services.stores.database import Database, Row, Transaction


class AgentActivities:
    """One model call, one tool call, and the turns and requests around them."""

    def __init__(
        self,
        database: Database,
        runner: StepRunner,
        *,
        thinking: Thinking,
        calling: Calling,
        ending: TurnEnding,
        queue: SessionQueue,
        waiting: ApprovalWaiting,
        default_model: str,
    ) -> None:
        self._database = database
        self._runner = runner
        self._thinking = thinking
        self._calling = calling
        self._ending = ending
        self._queue = queue
        self._waiting = waiting
        self._default_model = default_model

    @activity.defn(name="next_turn")
    async def next_turn(self, input: SessionInput) -> NextTurn:
        """Looks at the session's messages; its steps are counted under the session's own id."""
        found = NextTurn()

        async def work() -> None:
            nonlocal found
            chosen = await self._queue.next(input.tenant, input.session_id)
            found = NextTurn(run_id=chosen.run_id, adopted=chosen.adopted, traceparent=chosen.traceparent)

        as_run = WorkflowInput(tenant=input.tenant, run_id=input.session_id)
        result = await self._runner.run("next_turn", as_run, work, cancellable=False)
        return found if result.status == "done" else NextTurn(**result.model_dump())

    @activity.defn(name="think")
    async def think(self, input: ThinkInput) -> Thought:
        """The first one claims the run. Quick calls that only read are made here too: they cost less than going back."""
        info = activity.info()
        attempt = f"{info.workflow_run_id}/{info.attempt}"
        planned: ThoughtPlan | None = None

        async def think() -> None:
            nonlocal planned
            planned = await self._thinking.run(_work(input), input.iteration, attempt)

        steps = [Step(think_step(input.iteration), think, place="think")]
        if input.iteration == 1:
            steps.insert(0, self._claim(input))
        result = await self._runner.run_all(input, *steps)
        if result.status != "done" or planned is None:
            return Thought(**result.model_dump())
        quick = list(takewhile(lambda call: call.quick, planned.calls))  # what follows another call waits for it
        made = await self._runner.run_all(input, *(self._quick_call(input, call.step) for call in quick))
        if made.status != "done":
            return Thought(**made.model_dump())
        return Thought(
            calls=planned.calls[len(quick) :],
            final=planned.final,
            counts={"calls": len(planned.calls)} if planned.calls else {},
        )

    def _quick_call(self, input: ThinkInput, step: str) -> Step:
        return Step(step, lambda: self._calling.run(_work(input), step), place="call")

    def _claim(self, input: ThinkInput) -> Step:
        async def begin(transaction: Transaction, _: Row) -> dict[str, int]:
            return await turn_beginning.begin(transaction, input.run_id, self._default_model)

        return claiming(self._database, self._runner, input, input.execution_id, begin=begin)

    @activity.defn(name="call_tool")
    async def call_tool(self, input: CallInput) -> StepResult:
        """Status `undecided` when the call waits for a person who has not decided, or for a turn that has not ended."""
        counts: dict[str, int] = {}

        async def call() -> None:
            below = input.child_run_id if input.approval_id is None else None
            counts.update(await self._calling.run(_work(input), input.step, input.approval_id, below))

        result = await self._runner.run(input.step, input, call, place="call")
        return StepResult(status=UNDECIDED) if counts.get(UNDECIDED) else result

    @activity.defn(name="finish_turn")
    async def finish(self, input: FinishTurnInput) -> StepResult:
        """Status `steered` when somebody has said something more: then the turn goes on."""
        counts: dict[str, int] = {}

        async def end() -> None:
            counts.update(await self._ending.end(_work(input), input.end))

        result = await self._runner.run("finish_turn", input, end, cancellable=False)
        return StepResult(status=STEERED) if counts.get(STEERED) else result

    @activity.defn(name="look_at_approval")
    async def look_at_approval(self, input: ApprovalStepInput) -> StepResult:
        """Status `pending`, `over` when it was decided or withdrawn, or `not_ours`. With an outcome, that is written first."""
        claimed = await claim_run(self._database, self._runner, input, input.execution_id)
        if claimed.status != "done":
            return claimed
        state = ""

        async def look() -> None:
            nonlocal state
            state = await self._waiting.look(input.tenant, input.run_id, input.approval_id, input.outcome)

        result = await self._runner.run("look_at_approval", input, look, cancellable=False)
        if result.status != "done":
            return result
        return StepResult(status="pending" if state == "pending" else "over", detail=state)

    @activity.defn(name="remind_of_approval")
    async def remind(self, input: ApprovalStepInput) -> StepResult:
        async def remind() -> None:
            await self._waiting.remind(input.tenant, input.run_id, input.approval_id)

        return await self._runner.run("remind_of_approval", input, remind, cancellable=False)

    @activity.defn(name="fail_turn")
    async def fail_turn(self, input: TurnInput) -> StepResult:
        """For a turn whose execution closed without an end."""

        async def fail() -> None:
            error = {"code": "engine_lost", "detail": "The turn's workflow left no result", "retryable": True}
            await end_run(self._database, input, RunEnd(state="failed", error=error))

        return await self._runner.run("fail_turn", input, fail, cancellable=False)


def _work(input: TurnInput) -> TurnWork:
    return TurnWork(input.tenant, input.run_id, input.session_id)
