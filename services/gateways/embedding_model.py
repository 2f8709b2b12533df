"""The port to a model that turns text into vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from schemas.errors import PermanentFailure

Vectors = NDArray[np.float32]


class TokenCounter(Protocol):
    """Counts a text's own tokens, without the markers and the prefix that the model adds."""

    @property
    def limit(self) -> int:
        """Tokens of one input that the model reads, markers and prefix included."""
        ...

    def count(self, texts: list[str]) -> list[int]:
        """The number of tokens of each text."""
        ...

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """[start, end) of each token in code points of `text`, in order. Neighbours may share a character."""
        ...


class EmbeddingModel(Protocol):
    """Vectors are L2-normalised float32, so that a dot product is the cosine.

    `name` changes whenever the vectors do: vectors of different names are never compared. `embed_*` raise
    TransientFailure, EngineDown or PermanentFailure; they start the model when `start` was not called.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    @property
    def max_tokens(self) -> int:
        """A text's own tokens beyond this number are not read."""
        ...

    @property
    def tokens(self) -> TokenCounter: ...

    async def start(self) -> None:
        """Returns when a query can be embedded; calling it again does nothing."""
        ...

    async def stop(self) -> None: ...

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dimensions). RejectedTexts when the model refuses some of them for good."""
        ...

    async def embed_query(self, text: str) -> Vectors:
        """Shape (dimensions,), read-only."""
        ...


class RejectedTexts(PermanentFailure):
    """The model refused the texts at the indices in `reasons`; `vectors` holds all rows, NaN at those."""

    def __init__(self, reasons: Mapping[int, str], vectors: Vectors) -> None:
        first = next(iter(reasons.values()))
        super().__init__(
            "model_rejected", f"the embedding model refused {len(reasons)} of {len(vectors)} texts: {first}"
        )
        self.reasons = dict(reasons)
        self.vectors = vectors
