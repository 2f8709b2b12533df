"""Runs one step of a run inside an activity: alive, stoppable within a second, its failures counted and mapped."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog
from temporalio import activity

from activities import failure_mapping
from schemas.errors import EngineDown, PermanentFailure
from schemas.settings import WorkSettings
from schemas.workflow_contracts import StepResult, WorkflowInput
from services.events.cancel_watch import CancelWatch
from services.stores import precedence, runs_store
from services.stores.database import Database

HEARTBEAT_EVERY_S = 0.5
_log = structlog.get_logger(__name__)

Work = Callable[[], Awaitable[dict[str, int] | None]]
Failpoint = Callable[[str], None]


@dataclass(frozen=True)
class Step:
    """One of several steps that an activity takes one after the other; `name` is what failures are counted under.

    `sees_cancel`: the step itself looks whether the run's cancel was asked for. `place`: what its failpoints are named after,
    where that is another word.
    """

    name: str
    work: Work
    cancellable: bool = True
    sees_cancel: bool = False
    place: str | None = None


class StepRunner:
    """Wraps the work of every activity. `failpoint` is a no-op unless a test's environment asks for a kill.

    `prompt`: a person waits for these steps, so they give way to nothing.
    """

    def __init__(
        self,
        database: Database,
        cancels: CancelWatch,
        settings: WorkSettings,
        failpoint: Failpoint,
        *,
        prompt: bool = False,
    ) -> None:
        self._database = database
        self._cancels = cancels
        self._settings = settings
        self.failpoint = failpoint
        self._prompt = prompt

    async def run(
        self,
        step: str,
        input: WorkflowInput,
        work: Work,
        *,
        cancellable: bool = True,
        look: bool = True,
        place: str | None = None,
    ) -> StepResult:
        """Gives a StepResult, or raises the ApplicationError that failure_mapping decides on.

        `look`: whether the run's row is asked first for a cancel; it need not be by who has just read it.
        """
        with precedence.prompt() if self._prompt else contextlib.nullcontext():
            return await self._run(Step(step, work, cancellable, place=place), input, cancellable and look)

    async def run_all(self, input: WorkflowInput, *steps: Step) -> StepResult:
        """One step after the other, up to the first that is not `done`; counts are put together.

        Steps share an activity when each finds what an earlier run of it left, and going back to the workflow between them
        would cost more than they do (decision 8).
        """
        counts: dict[str, int] = {}
        seen = False
        with self._cancels.following(input.run_id) as wished:
            for step in steps:
                if step.cancellable and wished.is_set():
                    return StepResult(status="cancelled")
                with precedence.prompt() if self._prompt else contextlib.nullcontext():
                    result = await self._run(step, input, step.cancellable and not seen)
                if result.status != "done":
                    return result
                seen = seen or step.cancellable or step.sees_cancel
                counts |= result.counts
        return StepResult(counts=counts)

    async def _run(self, step: Step, input: WorkflowInput, look: bool) -> StepResult:
        structlog.contextvars.bind_contextvars(run=input.run_id, tenant=input.tenant, step=step.name)
        place = step.place or step.name
        try:
            if look and await self._cancel_requested(input):
                return StepResult(status="cancelled")
            self.failpoint(f"{place}.before")
            counts = await self._watched(input, step.work, step.cancellable)
            self.failpoint(f"{place}.after")
        except asyncio.CancelledError:
            if activity.is_cancelled():  # Temporal or a shutdown asked, not the run's own cancel
                raise
            return StepResult(status="cancelled")
        except Exception as error:
            return await self._failed(step.name, input, error)
        return StepResult(counts=counts or {})

    async def _watched(self, input: WorkflowInput, work: Work, cancellable: bool) -> dict[str, int] | None:
        beating = asyncio.create_task(_beat())
        task = asyncio.ensure_future(work())
        try:
            if not cancellable:
                return await task
            with self._cancels.watching(input.run_id, task):
                return await task
        finally:
            beating.cancel()
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await task

    async def _cancel_requested(self, input: WorkflowInput) -> bool:
        async with self._database.begin(input.tenant) as transaction:
            return await runs_store.cancel_requested(transaction, input.run_id)

    async def _failed(self, step: str, input: WorkflowInput, error: Exception) -> StepResult:
        quiet = failure_mapping.quiet_end(error)
        if quiet is not None:
            return quiet
        if isinstance(error, PermanentFailure):
            raise failure_mapping.of_permanent(error, step) from error
        transient = failure_mapping.as_transient(error)
        if transient.code == "internal":
            _log.exception("step_failed", step=step)
        try:
            async with self._database.begin(input.tenant) as transaction:
                failures = await runs_store.count_failure(transaction, input.run_id, step)
        except EngineDown as down:
            return StepResult(status="engine_down", engine=down.engine, detail=down.detail)
        if failures >= self._settings.transient_tries:
            detail = f"{transient.detail} (tried {failures} times, PERDURE_WORK__TRANSIENT_TRIES)"
            raise failure_mapping.permanent(transient.code, detail, retryable=True, step=step) from error
        raise failure_mapping.retry(transient, failures) from error


async def _beat() -> None:
    """Each beat that is sent is a call to Temporal; steps that are over before the first one is due cost it none."""
    while True:
        await asyncio.sleep(HEARTBEAT_EVERY_S)
        activity.heartbeat()
