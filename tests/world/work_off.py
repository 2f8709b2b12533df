"""Runs queued work in this process, stage by stage, as the workflows do: same order, same ends, no Temporal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from sqlalchemy import select

from schemas.errors import PermanentFailure
from schemas.identifiers import new_id
from schemas.runs import RunEnd
from schemas.workflow_contracts import INGEST_STEPS, ingest_steps_from
from services.access.identity import Identity
from services.answers.generating import Generating
from services.answers.retrieving import AnswerWork, Retrieving
from services.events import run_ending
from services.ingestion.access_refresh import AccessRefresh
from services.ingestion.chunk_stage import ChunkStage
from services.ingestion.embed_stage import EmbedStage
from services.ingestion.ending import Ending
from services.ingestion.enrich_stage import EnrichStage
from services.ingestion.fetch_stage import FetchStage
from services.ingestion.index_stage import IndexStage
from services.ingestion.parse_stage import ParseStage
from services.ingestion.publish_stage import NewerVersionLive, PublishStage
from services.ingestion.removal import Removal
from services.ingestion.space_removal import SpaceRemoval
from services.ingestion.version_work import VersionWork
from services.stores import runs_store
from services.stores.database import Database, Row
from services.stores.documents_store import DocumentGone
from services.stores.tables.runs import runs

Stage = Callable[[VersionWork], Awaitable[dict[str, int]]]
STAGES = tuple(INGEST_STEPS)
NOT_HERE = ("AgentTurn", "AskApproval")
"""Tests of agents run these themselves."""


@dataclass
class WorkOff:
    """Every service that work is made of. `ended` holds how each run ended, by its id."""

    database: Database
    identity: Identity
    fetch: FetchStage
    parse: ParseStage
    chunk: ChunkStage
    embed: EmbedStage
    index: IndexStage
    publishing: PublishStage
    enrich: EnrichStage
    ending: Ending
    removal: Removal
    space_removal: SpaceRemoval
    access_refresh: AccessRefresh
    retrieving: Retrieving
    generating: Generating

    def stage(self, name: str) -> Stage:
        stages: dict[str, Stage] = {
            "fetch": self.fetch.run,
            "parse": self.parse.run,
            "chunk": self.chunk.run,
            "embed": self.embed.run,
            "index": self.index.run,
            "publish": self.publishing.publish,
            "sweep": self.publishing.sweep,
            "enrich": self.enrich.run,
        }
        return stages[name]

    async def everything(self, tenant: str) -> None:
        """Runs all that is queued, and what that queues, until nothing is open."""
        for _ in range(1_000):
            async with self.database.begin(tenant) as transaction:
                ours = (runs.c.ended_at.is_(None), runs.c.contract.not_in(NOT_HERE))
                open_runs = await transaction.all(select(runs).where(*ours).order_by(runs.c.id))
            if not open_runs:
                return
            for run in open_runs:
                await self.run(run)
        raise AssertionError(f"work without end: {[dict(run) for run in open_runs]}")

    async def run(self, run: Row) -> None:
        if not await self._claim(run):
            return
        match run["contract"]:
            case "IngestDocument":
                await self.ingest(work_of(run), run["input_ref"].get("from_stage"))
            case "RemoveDocument":
                await self._remove(run)
            case "RemoveSpace":
                await self._remove_space(run)
            case "RefreshAccess":
                await self._refresh(run)
            case "AnswerQuestion":
                await self._answer(run)

    async def _claim(self, run: Row) -> bool:
        async with self.database.begin(run["tenant"]) as transaction:
            current = await runs_store.get(transaction, run["id"])
            execution = (current["execution_id"] if current is not None else None) or f"execution-{run['id']}"
            return await runs_store.claim(transaction, run["id"], execution) is not None

    async def ingest(self, work: VersionWork, from_stage: str | None = None) -> str:
        """IngestDocument: the word its workflow would end with."""
        status, end, name = "done", RunEnd(state="succeeded"), STAGES[0]
        try:
            for name in ingest_steps_from(from_stage):
                if await self._cancel_requested(work):
                    status = "cancelled"
                    break
                await self.stage(name)(work)
        except DocumentGone:
            status = "gone"
        except NewerVersionLive:
            status = "superseded"
        except PermanentFailure as failure:
            error = {"code": failure.code, "detail": failure.detail, "retryable": False}
            status, end = "failed", RunEnd(state="failed", error={**error, "stage": INGEST_STEPS[name]})
        if status in ("cancelled", "gone"):
            end = RunEnd(state="cancelled")
        await self.finish(work, status, end)
        return status

    async def finish(self, work: VersionWork, status: str, end: RunEnd) -> None:
        """The clean-up and the end of IngestDocument."""
        try:
            if status in ("cancelled", "superseded", "failed"):
                await self.publishing.discard(work, drop_chunks=status == "cancelled")
        except DocumentGone:
            pass
        await self.ending.end(work, end, superseded=status == "superseded")

    async def _cancel_requested(self, work: VersionWork) -> bool:
        async with self.database.begin(work.tenant) as transaction:
            row = await runs_store.get(transaction, work.run_id)
        return row is not None and row["cancel_requested_at"] is not None

    async def _remove(self, run: Row) -> None:
        tenant, document_id = run["tenant"], run["input_ref"]["document_id"]
        if await self.removal.open_ingests(tenant, document_id):
            return  # its workflow looks again on a timer; here `everything` does
        await self.removal.empty_indexes(tenant, document_id)
        await self.removal.empty_blobs(tenant, document_id)
        await self.removal.empty_rows(tenant, run["id"], document_id)
        await self._end(run, RunEnd(state="succeeded"))

    async def _remove_space(self, run: Row) -> None:
        tenant, space_id = run["tenant"], run["input_ref"]["space_id"]
        window = await self.space_removal.bury_window(tenant, space_id)
        if not window["left"]:
            await self.space_removal.forget(tenant, space_id)
            await self._end(run, RunEnd(state="succeeded"))

    async def _refresh(self, run: Row) -> None:
        try:
            await self.access_refresh.rewrite(run["tenant"], run["input_ref"]["document_id"])
            await self._end(run, RunEnd(state="succeeded"))
        except DocumentGone:
            await self._end(run, RunEnd(state="cancelled"))

    async def _answer(self, run: Row) -> None:
        work = AnswerWork(run["tenant"], run["id"], run["input_ref"]["answer_id"])
        end = RunEnd(state="succeeded")
        try:
            await self.retrieving.run(work)
            await self.generating.run(work, attempt=new_id())
        except PermanentFailure as failure:
            end = RunEnd(state="failed", error={"code": failure.code, "detail": failure.detail, "retryable": False})
        await self._end(run, end)

    async def _end(self, run: Row, end: RunEnd) -> None:
        async with self.database.begin(run["tenant"]) as transaction:
            await run_ending.end(transaction, run["id"], end)


def work_of(run: Row) -> VersionWork:
    return VersionWork(run["tenant"], run["id"], run["input_ref"]["document_id"], run["input_ref"]["version"])
