"""Cutting folded text into runs, and runs into tokens.

Scripts written without spaces (Chinese, Japanese, Korean compounds, Thai and its neighbours) become overlapping
pairs of characters, as Lucene's CJKAnalyzer does; everything else is words. A word glued by `-`, `_`, `.` or ended
by `++`/`#` gives its parts and, as one more token, itself: that is what finds PPR-9087, v2.3.1 and C++.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import regex
import snowballstemmer

from services.retrieval.text_folding import without_accents

MAX_TOKEN_CHARS = 100
_MAX_WHOLE_CHARS = 64
_MAX_STEMMED_CHARS = 30
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}ー々〆〇"
_HANGUL = r"\p{Hangul}"
_SOUTH_EAST = r"\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_LETTER = rf"[[\p{{L}}\p{{M}}\p{{N}}]--[{_UNSPACED}{_HANGUL}{_SOUTH_EAST}]]"
_RUNS = regex.compile(
    rf"[{_UNSPACED}]++|[{_HANGUL}]++|[{_SOUTH_EAST}][{_SOUTH_EAST}\p{{M}}]*+"
    r"|(?<![\w,.])\d{1,3}(?:,\d{3})++(?:\.\d++)?(?![\w])"
    rf"|{_LETTER}++(?:[-._']++{_LETTER}++)*+(?:\+\+|\#)?",
    regex.V1,
)
# The same pattern where only ASCII can occur: twice as fast.
_ASCII_RUNS = re.compile(
    r"(?<![\w,.])[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?(?!\w)|[a-z0-9]+(?:[-._']+[a-z0-9]+)*(?:\+\+|#)?", re.ASCII
)
_UNSPACED_START = regex.compile(rf"[{_UNSPACED}{_HANGUL}{_SOUTH_EAST}]")
_FIRST_UNSPACED = "\u0e00"  # no script without spaces lies below Thai
_IDENTIFIER = regex.compile(r"(?=.*\d)(?:.*[-_.].*|.*[^\W\d_].*)|.*(?:\+\+|#)|\d{5,}")
_DECIMAL = regex.compile(r"\d+\.\d+")
_STEMMER = snowballstemmer.stemmer("english")


class Word(NamedTuple):
    """A simple word in both its forms; `stem` is without accents."""

    exact: str
    stem: str


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    plain = without_accents(word)
    if plain.isascii() and plain.isalpha() and 2 < len(plain) <= _MAX_STEMMED_CHARS:
        return str(_STEMMER.stemWord(plain))
    return plain


def pairs(run: str) -> list[str]:
    """Overlapping pairs of a run; a run of one character is that character."""
    if len(run) == 1:
        return [run]
    return [run[i : i + 2] for i in range(len(run) - 1)]


@lru_cache(maxsize=32_768)
def words_of(compound: str) -> tuple[Word, ...]:
    """The simple words of a compound, in order."""
    if compound.isalnum():
        bare = compound[:MAX_TOKEN_CHARS]
        return (Word(bare, stem(bare)),)
    words = []
    for piece in regex.split(r"[-._]+", compound.removesuffix("++").removesuffix("#")):
        bare = piece.removesuffix("'s").strip("'")
        if not bare:
            continue
        bare = bare[:MAX_TOKEN_CHARS]
        words.append(Word(bare, stem(bare)))
        if "'" in bare:  # l'eau, rock'n'roll: what stands beside the apostrophe is a word too
            words.extend(Word(part, stem(part)) for part in bare.split("'") if len(part) > 2)
    return tuple(words)


@lru_cache(maxsize=32_768)
def wholes_of(compound: str) -> tuple[str, ...]:
    """A compound as it stands, and the hyphenated pieces inside a dotted one (`a.PPR-9087.pdf` holds PPR-9087)."""
    if compound.isalnum():
        return ()
    whole = compound.removesuffix("'s")
    wholes = []
    if len(whole) <= _MAX_WHOLE_CHARS and (regex.search(r"[-._]", whole) or whole.endswith(("++", "#"))):
        wholes.append(whole)
    pieces = regex.split(r"[._]+", whole)
    wholes.extend(piece for piece in pieces if "-" in piece and piece != whole and len(piece) <= _MAX_WHOLE_CHARS)
    return tuple(wholes)


@lru_cache(maxsize=65_536)
def spaced_tokens(run: str) -> tuple[str, ...]:
    """All tokens of a word, compound or number: each word's exact form and, where it differs, its stem; then wholes."""
    if "," in run:
        return number_tokens(run)
    tokens: list[str] = []
    for word in words_of(run):
        tokens.append(word.exact)
        if word.stem != word.exact:
            tokens.append(word.stem)
    tokens.extend(wholes_of(run))
    return tuple(tokens)


def number_tokens(number: str) -> tuple[str, ...]:
    """`1,234.50` is found as 1234.50 and as 1234, and by its parts."""
    plain = number.replace(",", "")
    whole = (plain, plain.split(".")[0]) if "." in plain else (plain,)
    return (*whole, *regex.split("[,.]", number))


def is_identifier(token: str) -> bool:
    """Codes of people and machines: PPR-9087, v2.3.1, c++, 12306. Years, small numbers and decimals are not."""
    return len(token) > 1 and _IDENTIFIER.fullmatch(token) is not None and _DECIMAL.fullmatch(token) is None


def runs(folded: str) -> list[str]:
    """The runs of a folded text: words and compounds, grouped numbers, stretches of a script without spaces."""
    found: list[str] = (_ASCII_RUNS if folded.isascii() else _RUNS).findall(folded)
    return found


def is_unspaced(run: str) -> bool:
    return run[0] >= _FIRST_UNSPACED and _UNSPACED_START.match(run) is not None


def is_number(run: str) -> bool:
    """A number with grouping commas; no other run holds a comma."""
    return "," in run


def tokens_of(run: str) -> tuple[str, ...] | list[str]:
    return pairs(run) if is_unspaced(run) else spaced_tokens(run)
