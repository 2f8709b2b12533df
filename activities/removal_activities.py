"""Removing documents and spaces, and refreshing who may read."""

from __future__ import annotations

from temporalio import activity

from activities.run_activities import end_run
from activities.step_runner import StepRunner
from schemas.workflow_contracts import (
    FinishInput,
    RefreshAccessInput,
    RemoveDocumentInput,
    RemoveSpaceInput,
    StepResult,
)
from services.ingestion.access_refresh import AccessRefresh
from services.ingestion.removal import Removal
from services.ingestion.space_removal import SpaceRemoval
from services.stores.database import Database


class RemovalActivities:
    """One activity per store to empty; none of them is cancelled."""

    def __init__(
        self,
        database: Database,
        runner: StepRunner,
        *,
        removal: Removal,
        space_removal: SpaceRemoval,
        access_refresh: AccessRefresh,
    ) -> None:
        self._database = database
        self._runner = runner
        self._removal = removal
        self._space_removal = space_removal
        self._access_refresh = access_refresh

    @activity.defn(name="close_ingests")
    async def close_ingests(self, input: RemoveDocumentInput) -> StepResult:
        """Counts: open. It looks once: an activity that waited here would hold a slot that the ingests need to close."""

        async def work() -> dict[str, int]:
            return {"open": len(await self._removal.open_ingests(input.tenant, input.document_id))}

        return await self._runner.run("close_ingests", input, work, cancellable=False)

    @activity.defn(name="empty_indexes")
    async def empty_indexes(self, input: RemoveDocumentInput) -> StepResult:
        return await self._runner.run(
            "empty_indexes",
            input,
            lambda: self._removal.empty_indexes(input.tenant, input.document_id),
            cancellable=False,
        )

    @activity.defn(name="empty_blobs")
    async def empty_blobs(self, input: RemoveDocumentInput) -> StepResult:
        return await self._runner.run(
            "empty_blobs", input, lambda: self._removal.empty_blobs(input.tenant, input.document_id), cancellable=False
        )

    @activity.defn(name="empty_rows")
    async def empty_rows(self, input: RemoveDocumentInput) -> StepResult:
        return await self._runner.run(
            "empty_rows",
            input,
            lambda: self._removal.empty_rows(input.tenant, input.run_id, input.document_id),
            cancellable=False,
        )

    @activity.defn(name="bury_window")
    async def bury_window(self, input: RemoveSpaceInput) -> StepResult:
        return await self._runner.run(
            "bury_window",
            input,
            lambda: self._space_removal.bury_window(input.tenant, input.space_id),
            cancellable=False,
        )

    @activity.defn(name="forget_space")
    async def forget_space(self, input: RemoveSpaceInput) -> StepResult:
        return await self._runner.run(
            "forget_space", input, lambda: self._space_removal.forget(input.tenant, input.space_id), cancellable=False
        )

    @activity.defn(name="refresh_access")
    async def refresh_access(self, input: RefreshAccessInput) -> StepResult:
        async def work() -> None:
            await self._access_refresh.rewrite(input.tenant, input.document_id)

        return await self._runner.run("refresh_access", input, work)

    @activity.defn(name="finish_removal")
    async def finish(self, input: FinishInput) -> StepResult:
        async def work() -> None:
            await end_run(self._database, input, input.end)

        return await self._runner.run("finish_removal", input, work, cancellable=False)
