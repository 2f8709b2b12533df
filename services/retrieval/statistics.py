"""What is known of the asked spaces as a whole: how many chunks, their mean vector, how many hold each asked word."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schemas.errors import Failure
from schemas.passages import SpaceStatistics
from services.gateways.embedding_model import EmbeddingModel
from services.retrieval.analyser import content_terms
from services.retrieval.background_texts import BACKGROUND_TEXTS
from services.stores import embeddings_store
from services.stores.database import Database
from services.stores.keyword_index import KeywordIndex


@dataclass(frozen=True)
class Known:
    """The asked spaces' statistics and the mean of plain sentences."""

    space: SpaceStatistics
    background_mean: NDArray[np.float32]


class Statistics:
    """Also holds the mean of the background sentences, which no answer may be judged without."""

    def __init__(self, database: Database, keywords: KeywordIndex, model: EmbeddingModel) -> None:
        self._database = database
        self._keywords = keywords
        self._model = model
        self._background: NDArray[np.float32] | None = None
        self._preparing = asyncio.Lock()

    async def prepare(self) -> NDArray[np.float32]:
        """Embeds the background sentences once per process: at start, or else for the first question."""
        async with self._preparing:
            if self._background is None:
                vectors = await self._model.embed_passages(list(BACKGROUND_TEXTS))
                self._background = vectors.mean(axis=0)
        return self._background

    async def of_spaces(self, tenant: str, question: str, spaces: Sequence[str]) -> Known:
        counts, (chunks, mean), background = await asyncio.gather(
            self._term_counts(tenant, question, spaces), self._mean(tenant, spaces), self.prepare()
        )
        own = SpaceStatistics(chunks=chunks, mean_vector=[] if mean is None else mean.tolist(), term_counts=counts)
        return Known(own, background)

    async def _term_counts(self, tenant: str, question: str, spaces: Sequence[str]) -> dict[str, int]:
        try:
            return await self._keywords.term_counts(tenant, spaces, content_terms(question))
        except Failure:
            return {}  # every word counts as rare: evidence is then judged by the vectors and the bare share

    async def _mean(self, tenant: str, spaces: Sequence[str]) -> tuple[int, NDArray[np.float32] | None]:
        async with self._database.begin(tenant) as transaction:
            return await embeddings_store.mean_of_spaces(transaction, self._model.name, spaces)
