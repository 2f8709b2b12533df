"""The stages of IngestDocument."""

from __future__ import annotations

from temporalio import activity

from activities.run_activities import claim_run, claiming
from activities.step_runner import Step, StepRunner
from schemas.workflow_contracts import (
    BeginIngestInput,
    DiscardInput,
    FinishIngestInput,
    IngestInput,
    StepResult,
    ingest_steps_from,
)
from services.ingestion.chunk_stage import ChunkStage
from services.ingestion.embed_stage import EmbedStage
from services.ingestion.ending import Ending
from services.ingestion.enrich_stage import EnrichStage
from services.ingestion.fetch_stage import FetchStage
from services.ingestion.index_stage import IndexStage
from services.ingestion.parse_stage import ParseStage
from services.ingestion.publish_stage import PublishStage
from services.ingestion.version_work import VersionWork
from services.stores.database import Database


class IngestActivities:
    """The steps of an ingest, each safe to run again; those that are over at once share an activity."""

    def __init__(
        self,
        database: Database,
        runner: StepRunner,
        *,
        fetch: FetchStage,
        parse: ParseStage,
        chunk: ChunkStage,
        embed: EmbedStage,
        index: IndexStage,
        publish: PublishStage,
        enrich: EnrichStage,
        ending: Ending,
    ) -> None:
        self._database = database
        self._runner = runner
        self._fetch = fetch
        self._parse = parse
        self._chunk = chunk
        self._embed = embed
        self._index = index
        self._publish = publish
        self._enrich = enrich
        self._ending = ending

    @activity.defn(name="read_document")
    async def read(self, input: BeginIngestInput) -> StepResult:
        """Claims the run, then fetches and parses what a retry does not leave out."""
        claim = claiming(self._database, self._runner, input, input.execution_id)
        steps = [
            Step("fetch", lambda: self._fetch.run(_work(input))),
            Step("parse", lambda: self._parse.run(_work(input))),
        ]
        due = ingest_steps_from(input.from_stage)
        return await self._runner.run_all(input, claim, *(step for step in steps if step.name in due))

    @activity.defn(name="chunk_document")
    async def chunk(self, input: IngestInput) -> StepResult:
        return await self._runner.run("chunk", input, lambda: self._chunk.run(_work(input)))

    @activity.defn(name="embed_chunks")
    async def embed(self, input: IngestInput) -> StepResult:
        return await self._runner.run("embed", input, lambda: self._embed.run(_work(input)))

    @activity.defn(name="publish_version")
    async def publish(self, input: IngestInput) -> StepResult:
        """Indexes, publishes, sweeps and enriches: all quick, and each finds what an earlier run of it left."""
        work = _work(input)
        return await self._runner.run_all(
            input,
            Step("index", lambda: self._index.run(work)),
            Step("publish", lambda: self._publish.publish(work)),
            Step("sweep", lambda: self._publish.sweep(work), cancellable=False),
            Step("enrich", lambda: self._enrich.run(work)),
        )

    @activity.defn(name="discard_version")
    async def discard(self, input: DiscardInput) -> StepResult:
        claimed = await claim_run(self._database, self._runner, input, input.execution_id)
        if claimed.status != "done":
            return claimed
        return await self._runner.run(
            "discard",
            input,
            lambda: self._publish.discard(_work(input), drop_chunks=input.drop_chunks),
            cancellable=False,
        )

    @activity.defn(name="finish_ingest")
    async def finish(self, input: FinishIngestInput) -> StepResult:
        async def work() -> None:
            await self._ending.end(_work(input), input.end, superseded=input.superseded)

        return await self._runner.run("finish_ingest", input, work, cancellable=False)


def _work(input: IngestInput) -> VersionWork:
    return VersionWork(input.tenant, input.run_id, input.document_id, input.version)
