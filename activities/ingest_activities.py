"""The stages of IngestDocument."""

from __future__ import annotations

from temporalio import activity

from activities.step_runner import StepRunner
from schemas.workflow_contracts import DiscardInput, FinishIngestInput, IngestInput, StepResult
from services.ingestion.chunk_stage import ChunkStage
from services.ingestion.embed_stage import EmbedStage
from services.ingestion.ending import Ending
from services.ingestion.enrich_stage import EnrichStage
from services.ingestion.fetch_stage import FetchStage
from services.ingestion.index_stage import IndexStage
from services.ingestion.parse_stage import ParseStage
from services.ingestion.publish_stage import PublishStage
from services.ingestion.version_work import VersionWork


class IngestActivities:
    """One activity per stage, each safe to run again."""

    def __init__(
        self,
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
        self._runner = runner
        self._fetch = fetch
        self._parse = parse
        self._chunk = chunk
        self._embed = embed
        self._index = index
        self._publish = publish
        self._enrich = enrich
        self._ending = ending

    @activity.defn(name="fetch_document")
    async def fetch(self, input: IngestInput) -> StepResult:
        return await self._runner.run("fetch", input, lambda: self._fetch.run(_work(input)))

    @activity.defn(name="parse_document")
    async def parse(self, input: IngestInput) -> StepResult:
        return await self._runner.run("parse", input, lambda: self._parse.run(_work(input)))

    @activity.defn(name="chunk_document")
    async def chunk(self, input: IngestInput) -> StepResult:
        return await self._runner.run("chunk", input, lambda: self._chunk.run(_work(input)))

    @activity.defn(name="embed_chunks")
    async def embed(self, input: IngestInput) -> StepResult:
        return await self._runner.run("embed", input, lambda: self._embed.run(_work(input)))

    @activity.defn(name="index_chunks")
    async def index(self, input: IngestInput) -> StepResult:
        return await self._runner.run("index", input, lambda: self._index.run(_work(input)))

    @activity.defn(name="publish_version")
    async def publish(self, input: IngestInput) -> StepResult:
        return await self._runner.run("publish", input, lambda: self._publish.publish(_work(input)))

    @activity.defn(name="sweep_indexes")
    async def sweep(self, input: IngestInput) -> StepResult:
        return await self._runner.run("sweep", input, lambda: self._publish.sweep(_work(input)), cancellable=False)

    @activity.defn(name="enrich_document")
    async def enrich(self, input: IngestInput) -> StepResult:
        return await self._runner.run("enrich", input, lambda: self._enrich.run(_work(input)))

    @activity.defn(name="discard_version")
    async def discard(self, input: DiscardInput) -> StepResult:
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
