"""What all workflows share: one activity at a time, waits for engines, a cancel that acts at once, a visible state."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import SearchAttributeKey
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.failure_mapping import error_details
    from activities.run_activities import RunActivities
    from schemas.runs import RunEnd
    from schemas.workflow_contracts import (
        CANCEL_SIGNAL,
        SEARCH_ATTRIBUTES,
        STATE_AT_START,
        WAKE_SIGNAL,
        CancelRequest,
        ClaimInput,
        StepResult,
        WaitingInput,
        WorkflowInput,
    )
    from workflows.activity_options import BOOKKEEPING

ENGINE_FIRST_WAIT_S = 1.0
ENGINE_LONGEST_WAIT_S = 300.0
ENGINE_PATIENCE = timedelta(hours=24)
_STATE = SearchAttributeKey.for_keyword(SEARCH_ATTRIBUTES.state)
_WAITING_FOR = SearchAttributeKey.for_keyword(SEARCH_ATTRIBUTES.waiting_for)


Result = TypeVar("Result", bound=StepResult)


class StepFailed(ApplicationError):
    """A step failed for good; `error` is the contract's {code, detail, retryable}, `step` what failed, where that is known.

    A Temporal failure, so that one which no workflow catches (its finish failed) closes the execution, and the reconciler
    records the end. Any other exception would be tried again for ever.
    """

    def __init__(self, error: dict[str, Any]) -> None:
        self.step: str | None = error.get("step")
        self.error = {name: value for name, value in error.items() if name != "step"}
        super().__init__(str(error["detail"]), self.error, type=str(error["code"]), non_retryable=True)


class RunLifecycle:
    """Held by a workflow; everything in it is workflow code and deterministic."""

    def __init__(self, input: WorkflowInput, title: str, *, tells_row: bool = True) -> None:
        """`tells_row`: whether there is a run's row to show its waits in."""
        self._input = input
        self._title = title
        self._tells_row = tells_row
        self._lines: list[str] = []
        self._shown: tuple[str, str | None] = (STATE_AT_START, None)
        self.cancel_requested = False
        self.woken = False

    def request_cancel(self) -> None:
        self.cancel_requested = True

    async def claim(self) -> bool:
        """False when this execution has nothing to do: the run has ended or is another's."""
        claim = ClaimInput(**self._input.model_dump(include=_BASE), execution_id=execution_id())
        result = await self.step(RunActivities.claim, claim, BOOKKEEPING, "claim the run", patient=True)
        self.show("running" if result.status == "done" else result.status)
        return result.status == "done"

    async def step(
        self, method: Callable[..., Any], argument: Any, options: Any, summary: str, *, patient: bool = False
    ) -> StepResult:
        return await self.step_of(StepResult, method, argument, options, summary, patient=patient)

    async def step_of(
        self,
        kind: type[Result],
        method: Callable[..., Any],
        argument: Any,
        options: Any,
        summary: str,
        *,
        patient: bool = False,
    ) -> Result:
        """Runs one activity to its end, waiting as long as an engine is down. Raises StepFailed. `kind` is what it gives.

        `patient` steps ignore a cancel and have no limit on waiting: they must be done whatever people want.
        """
        wait_s = ENGINE_FIRST_WAIT_S
        waiting_for, patience_ends = None, None
        while True:
            if self.cancel_requested and not patient:
                return kind(status="cancelled")
            result = await self._run(kind, method, argument, options, summary, patient)
            if result.status != "engine_down":
                if waiting_for is not None:
                    await self._show_resumed()
                self._note(summary, result)
                return result
            engine = result.engine or "an engine"
            if patience_ends is None:
                patience_ends = workflow.now() + ENGINE_PATIENCE
            elif workflow.now() >= patience_ends and not patient:
                raise StepFailed({"code": "engine_down", "detail": f"{engine} was away too long", "retryable": True})
            if engine != waiting_for:
                waiting_for = engine
                await self._show_waiting(engine, None if patient else patience_ends.isoformat())
            await self.pause(wait_s, f"try {engine} again", patient=patient)
            wait_s = min(ENGINE_LONGEST_WAIT_S, wait_s * 2)

    async def _run(
        self,
        kind: type[Result],
        method: Callable[..., Any],
        argument: Any,
        options: Any,
        summary: str,
        patient: bool,
    ) -> Result:
        try:
            handle = workflow.start_activity_method(method, argument, summary=summary, **options)
            await self.until(lambda: handle.done() or (self.cancel_requested and not patient))
            if not handle.done():
                handle.cancel()
                await self.until(handle.done)
            result: Result = handle.result()
        except ActivityError as error:
            if is_cancelled_exception(error):
                return kind(status="cancelled")
            cause = error.cause
            details = cause.details if isinstance(cause, ApplicationError) else ()
            raise StepFailed(error_details(tuple(details), str(cause))) from error
        except ApplicationError as refused:  # the argument is too big for a history
            raise StepFailed(error_details((), str(refused))) from refused
        return result

    async def until(self, condition: Callable[[], bool], *, timeout_s: float | None = None, summary: str = "") -> None:
        """Waits for the condition; TimeoutError after `timeout_s`.

        An operator's cancel of the execution becomes the cancel that people ask for, so it too is cleaned up after and
        recorded, and a removal is not stopped by it.
        """
        while not condition():
            try:
                await workflow.wait_condition(condition, timeout=timeout_s, timeout_summary=summary or None)
            except asyncio.CancelledError:
                self.request_cancel()

    async def pause(self, wait_s: float, summary: str, *, patient: bool) -> None:
        """A timer, which holds no worker slot; a wake ends it, and so does a cancel of what can be cancelled."""
        self.woken = False
        with contextlib.suppress(TimeoutError):
            await self.until(
                lambda: self.woken or (self.cancel_requested and not patient), timeout_s=wait_s, summary=summary
            )

    async def _show_waiting(self, engine: str, until: str | None) -> None:
        self.show("waiting", waiting_for=engine)
        if self._tells_row and engine != "postgres":  # the row cannot be written while Postgres itself is away
            told = WaitingInput(**self._input.model_dump(include=_BASE), waiting_for=engine, until=until)
            await self._tell(RunActivities.show_waiting, told, f"waiting for {engine}")

    async def _show_resumed(self) -> None:
        self.show("running")
        if self._tells_row:
            await self._tell(
                RunActivities.show_resumed, WorkflowInput(**self._input.model_dump(include=_BASE)), "going on"
            )

    async def _tell(self, method: Callable[..., Any], argument: WorkflowInput, summary: str) -> None:
        """What only shows a state must not end a run."""
        try:
            await self._run(StepResult, method, argument, BOOKKEEPING, summary, True)
        except StepFailed as failed:
            workflow.logger.warning("not shown: %s", failed.error["detail"])

    def show(self, state: str, *, waiting_for: str | None = None) -> None:
        """State in the search attributes, when it is another, and, in words, in the details that the Temporal UI shows."""
        if (state, waiting_for) != self._shown:
            self._shown = (state, waiting_for)
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


class WakeableRun:
    """What every run's workflow can be told; the workflow's init sets `_lifecycle`."""

    _lifecycle: RunLifecycle

    @workflow.signal(name=WAKE_SIGNAL)
    def wake(self) -> None:
        self._lifecycle.woken = True


class CancellableRun(WakeableRun):
    """A run that people can cancel."""

    @workflow.signal(name=CANCEL_SIGNAL)
    def cancel(self, _: CancelRequest) -> None:
        self._lifecycle.request_cancel()


class UnstoppableRun(WakeableRun):
    """A run that goes on whatever is asked."""

    @workflow.signal(name=CANCEL_SIGNAL)
    def cancel(self, _: CancelRequest) -> None:
        workflow.logger.info("a removal is not cancelled")


def execution_id() -> str:
    """What a run is bound to: the first execution of a chain, so one that continued as new, or was reset, still holds it."""
    return workflow.info().first_execution_run_id


_BASE = {"tenant", "run_id", "traceparent"}
