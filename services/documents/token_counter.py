"""The port to the embedding model's own tokenizer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol


class TokenCounter(Protocol):
    """Counts tokens as the embedding model does, without its special tokens."""

    def count(self, texts: list[str]) -> list[int]:
        """The number of tokens of each text."""
        ...

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Where each token stands in `text`, in code points, in order."""
        ...


_BATCH_TEXTS = 1_024
_BATCH_CHARACTERS = 400_000


def count_in_batches(counter: TokenCounter, texts: Sequence[str]) -> list[int]:
    """Counts of all texts, in batches that keep the tokenizer's memory small."""
    return [count for batch in _batches(texts) for count in counter.count(batch)]


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    characters = 0
    for text in texts:
        if batch and (len(batch) >= _BATCH_TEXTS or characters + len(text) > _BATCH_CHARACTERS):
            yield batch
            batch, characters = [], 0
        batch.append(text)
        characters += len(text)
    if batch:
        yield batch
