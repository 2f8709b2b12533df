"""The real embedding model as tests look at it: what was asked of it is counted, and no text is computed twice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from services.gateways.embedding_model import TokenCounter, Vectors
from services.gateways.local_embedding import LocalEmbedding


class RememberedEmbedding:
    """One model for all tests of a session. Its vectors are real; a text that another test asked for is not made again."""

    def __init__(self, model: LocalEmbedding) -> None:
        self.model = model
        self._known: dict[str, Vectors] = {}

    async def passages(self, texts: Sequence[str]) -> Vectors:
        unknown = [text for text in dict.fromkeys(texts) if text not in self._known]
        if unknown:
            made = await self.model.embed_passages(unknown)
            self._known |= dict(zip(unknown, made, strict=True))
        rows = [self._known[text] for text in texts]
        return np.stack(rows) if rows else np.empty((0, self.model.dimensions), np.float32)


class CountedEmbedding:
    """The embedding port of one test: `asked` holds every passage that a stage asked the model for, in order."""

    def __init__(self, remembered: RememberedEmbedding) -> None:
        self._remembered = remembered
        self.asked: list[str] = []

    @property
    def name(self) -> str:
        return self._remembered.model.name

    @property
    def dimensions(self) -> int:
        return self._remembered.model.dimensions

    @property
    def max_tokens(self) -> int:
        return self._remembered.model.max_tokens

    @property
    def tokens(self) -> TokenCounter:
        return self._remembered.model.tokens

    async def start(self) -> None:
        await self._remembered.model.start()

    async def stop(self) -> None:
        """The session's fixture stops the model."""

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.asked.extend(texts)
        return await self._remembered.passages(texts)

    async def embed_query(self, text: str) -> Vectors:
        return await self._remembered.model.embed_query(text)
