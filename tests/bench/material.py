"""Made-up documents and questions: the same seed gives the same words, and no two seeds share a sentence."""

from __future__ import annotations

import itertools
import random

VOCABULARY_WORDS = 6_000
SENTENCE_WORDS = 16
SENTENCES_OF_SECTION = 5
"""With its heading such a section fills one chunk of the default size nearly."""

_ONSETS = ("b", "br", "c", "d", "f", "g", "gr", "h", "l", "m", "n", "p", "pl", "r", "s", "st", "t", "tr", "v", "w")
_VOWELS = ("a", "e", "i", "o", "u", "ea", "ou")
_CODAS = ("", "n", "r", "s", "t", "l", "m", "nd", "st", "ck")


def _vocabulary() -> list[str]:
    syllables = ["".join(parts) for parts in itertools.product(_ONSETS, _VOWELS, _CODAS)]
    rng = random.Random(0)
    words = {"".join(rng.sample(syllables, rng.choice((1, 1, 2)))) for _ in range(VOCABULARY_WORDS * 3)}
    return sorted(words)[:: max(1, len(words) // VOCABULARY_WORDS)][:VOCABULARY_WORDS]


_WORDS = _vocabulary()
random.Random(1).shuffle(_WORDS)
_WEIGHTS = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(_WORDS))))
"""Zipf's law: few words are in most sentences, most words in few, as in real text."""


def words(rng: random.Random, count: int) -> list[str]:
    return rng.choices(_WORDS, cum_weights=_WEIGHTS, k=count)


def sentence(rng: random.Random) -> str:
    return " ".join(words(rng, SENTENCE_WORDS)).capitalize() + "."


def paragraph(rng: random.Random, sentences: int) -> str:
    return " ".join(sentence(rng) for _ in range(sentences))


def section(rng: random.Random, number: int) -> str:
    heading = " ".join(words(rng, 3)).capitalize()
    return f"## {number}. {heading}\n\n{paragraph(rng, SENTENCES_OF_SECTION)}\n"


def document(seed: str, sections: int) -> str:
    """Markdown with `sections` sections, each about one chunk."""
    rng = random.Random(seed)
    return f"# Register {seed}\n\n" + "\n".join(section(rng, number) for number in range(1, sections + 1))


def question(rng: random.Random, text: str, length: int = 6) -> str:
    """Some neighbouring words of a text, so that there is something to be found."""
    told = text.split()
    start = rng.randrange(max(1, len(told) - length))
    return " ".join(told[start : start + length])
