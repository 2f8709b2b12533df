"""Stage embed: a vector for every embedding input that the tenant has none of yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from schemas.errors import PermanentFailure
from schemas.settings import EmbeddingSettings
from services.gateways.embedding_model import EmbeddingModel, RejectedTexts
from services.ingestion.version_work import StageProgress, VersionWork, enter_stage
from services.stores import chunks_store, documents_store, embeddings_store, runs_store
from services.stores.database import Database, Row, Transaction

STEP = "embed"


class EmbedStage:
    """The cache is the cursor: what was embedded before a kill is not embedded again."""

    def __init__(
        self,
        database: Database,
        model: EmbeddingModel,
        settings: EmbeddingSettings,
        failpoint: Callable[[str], None],
    ) -> None:
        self._database = database
        self._model = model
        self._settings = settings
        self._failpoint = failpoint

    async def run(self, work: VersionWork) -> dict[str, int]:
        """Counts: chunks, made (embeddings made by this run, over all its attempts)."""
        async with documents_store.writing(self._database, work.tenant, work.document_id) as transaction:
            await enter_stage(transaction, work, "embedding")
            missing = await chunks_store.missing_inputs(transaction, work.document_id, work.version, self._model.name)
            made = await self._made_before(transaction, work)
        progress = StageProgress(work, "embedding", "chunks")
        for start in range(0, len(missing), self._settings.batch):
            batch = missing[start : start + self._settings.batch]
            made = await self._embed(work, batch, made, progress, start + len(batch), len(missing))
            self._failpoint("embed.between_batches")
        return {"chunks": len(missing), "made": made}

    async def _made_before(self, transaction: Transaction, work: VersionWork) -> int:
        stored = await runs_store.step_result(transaction, work.run_id, STEP)
        return int((stored or {}).get("made", 0))

    async def _embed(
        self, work: VersionWork, batch: Sequence[Row], made: int, progress: StageProgress, done: int, total: int
    ) -> int:
        """Embeds one batch and keeps vectors and count in one transaction, so the count survives a kill too."""
        refused: RejectedTexts | None = None
        try:
            vectors = await self._model.embed_passages([row["embedding_input"] for row in batch])
        except RejectedTexts as rejected:  # the others of the batch are kept; the run then fails for the refused ones
            refused, vectors = rejected, rejected.vectors
        by_hash = {
            row["input_hash"]: vector
            for place, (row, vector) in enumerate(zip(batch, vectors, strict=True))
            if refused is None or place not in refused.reasons
        }
        async with documents_store.writing(self._database, work.tenant, work.document_id) as transaction:
            await embeddings_store.store(transaction, self._model.name, by_hash)
            await runs_store.store_step(transaction, work.run_id, STEP, {"made": made + len(by_hash)})
            await progress.show(transaction, done, total)
        if refused is not None:
            raise PermanentFailure("model_unavailable", refused.detail)
        return made + len(by_hash)
