"""What all workflows share: one activity at a time, waits for engines, a cancel that acts at once, a visible state."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeKey
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.failure_mapping import error_details
    from activities.run_activities import RunActivities
    from schemas.runs import RunEnd
    from schemas.workflow_contracts import SEARCH_ATTRIBUTES, StepResult, WaitingInput, WorkflowInput
    from workflows.activity_options import BOOKKEEPING

ENGINE_FIRST_WAIT_S = 1.0
ENGINE_LONGEST_WAIT_S = 300.0
ENGINE_PATIENCE = timedelta(hours=24)
_STATE = SearchAttributeKey.for_keyword(SEARCH_ATTRIBUTES.state)
_WAITING_FOR = SearchAttributeKey.for_keyword(SEARCH_ATTRIBUTES.waiting_for)


class StepFailed(Exception):
    """A step failed for good; `error` is the contract's {code, detail, retryable}."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["detail"])
        self.error = error


class RunLifecycle:
    """Held by a workflow; everything in it is workflow code and deterministic."""

    def __init__(self, input: WorkflowInput, title: str) -> None:
        self._input = input
        self._title = title
        self._lines: list[str] = []
        self.cancel_requested = False
        self.woken = False

    def request_cancel(self) -> None:
        self.cancel_requested = True

    async def claim(self) -> bool:
        """False when this execution has nothing to do: the run has ended or is another's."""
        result = await self.step(RunActivities.claim, self._input, BOOKKEEPING, "claim the run", patient=True)
        if result.status == "done":
            self.show("running")
        return result.status == "done"

    async def step(
        self, method: Callable[..., Any], argument: Any, options: Any, summary: str, *, patient: bool = False
    ) -> StepResult:
        """Runs one activity to its end, waiting as long as an engine is down. Raises StepFailed.

        `patient` steps ignore a cancel and have no limit on waiting: they must be done whatever people want.
        """
        waited, wait_s = timedelta(), ENGINE_FIRST_WAIT_S
        waiting = False
        while True:
            if self.cancel_requested and not patient:
                return StepResult(status="cancelled")
            result = await self._run(method, argument, options, summary, patient)
            if result.status != "engine_down":
                if waiting:
                    await self._show_resumed()
                self._note(summary, result)
                return result
            engine = result.engine or "an engine"
            if waited >= ENGINE_PATIENCE and not patient:
                raise StepFailed({"code": "engine_down", "detail": f"{engine} was away too long", "retryable": True})
            await self._wait_for(engine, wait_s, first=not waiting, patient=patient)
            waiting, waited = True, waited + timedelta(seconds=wait_s)
            wait_s = min(ENGINE_LONGEST_WAIT_S, wait_s * 2)

    async def _run(
        self, method: Callable[..., Any], argument: Any, options: Any, summary: str, patient: bool
    ) -> StepResult:
        handle = workflow.start_activity_method(method, argument, summary=summary, **options)
        if not patient:
            await workflow.wait_condition(lambda: handle.done() or self.cancel_requested)
            if not handle.done():
                handle.cancel()
        try:
            result: StepResult = await handle
        except ActivityError as error:
            if is_cancelled_exception(error):
                return StepResult(status="cancelled")
            cause = error.cause
            details = cause.details if isinstance(cause, ApplicationError) else ()
            raise StepFailed(error_details(tuple(details), str(cause))) from error
        return result

    async def _wait_for(self, engine: str, wait_s: float, *, first: bool, patient: bool) -> None:
        self.show("waiting", waiting_for=engine)
        if first and engine != "postgres":
            until = None if patient else (workflow.now() + ENGINE_PATIENCE).isoformat()
            told = WaitingInput(**self._input.model_dump(include=_BASE), waiting_for=engine, until=until)
            await self._run(RunActivities.show_waiting, told, BOOKKEEPING, f"waiting for {engine}", True)
        self.woken = False
        try:
            await workflow.wait_condition(
                lambda: self.woken or (self.cancel_requested and not patient),
                timeout=timedelta(seconds=wait_s),
                timeout_summary=f"try {engine} again",
            )
        except TimeoutError:
            return

    async def _show_resumed(self) -> None:
        self.show("running")
        base = WorkflowInput(**self._input.model_dump(include=_BASE))
        await self._run(RunActivities.show_resumed, base, BOOKKEEPING, "going on", True)

    def show(self, state: str, *, waiting_for: str | None = None) -> None:
        """State in the search attributes and, in words, in the details that the Temporal UI shows."""
        workflow.upsert_search_attributes(
            [
                _STATE.value_set(state),
                _WAITING_FOR.value_set(waiting_for) if waiting_for else _WAITING_FOR.value_unset(),
            ]
        )
        head = f"**{self._title}** · {state}" + (f" for {waiting_for}" if waiting_for else "")
        workflow.set_current_details("\n".join([head, "", *self._lines]))

    def _note(self, summary: str, result: StepResult) -> None:
        counts = ", ".join(f"{value} {name}" for name, value in result.counts.items())
        told = counts or ("" if result.status == "done" else result.status)
        self._lines.append(f"- {summary}" + (f": {told}" if told else ""))
        workflow.set_current_details("\n".join([f"**{self._title}** · running", "", *self._lines]))

    def end_of(self, status: str) -> RunEnd:
        """The run's end for a step's status that is no failure."""
        return RunEnd(state="cancelled" if status in ("cancelled", "gone") else "succeeded")


_BASE = {"tenant", "run_id", "traceparent"}
