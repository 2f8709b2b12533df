"""Vectors of queries already embedded: a page reloaded or a question asked by many costs the model nothing."""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b

from services.gateways.embedding_model import Vectors

CAPACITY = 1_000


class QueryVectors:
    """Least recently used of one model. A vector depends on model and text alone, so tenants share it; texts are kept
    as hashes only."""

    def __init__(self, model: str, capacity: int = CAPACITY) -> None:
        self._model = model
        self._capacity = capacity
        self._vectors: OrderedDict[bytes, Vectors] = OrderedDict()

    def get(self, text: str) -> Vectors | None:
        key = self._key(text)
        if (vector := self._vectors.get(key)) is not None:
            self._vectors.move_to_end(key)
        return vector

    def keep(self, text: str, vector: Vectors) -> Vectors:
        """The vector, from now on read-only."""
        vector.setflags(write=False)
        self._vectors[self._key(text)] = vector
        if len(self._vectors) > self._capacity:
            self._vectors.popitem(last=False)
        return vector

    def _key(self, text: str) -> bytes:
        return blake2b(f"{self._model}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
