"""The language our own sentences take: Chinese for a question in Chinese characters, else English."""

from __future__ import annotations

from typing import Literal

import regex

Language = Literal["en", "zh"]

_HAN = regex.compile(r"\p{Han}")
_KANA_OR_HANGUL = regex.compile(r"[\p{Hiragana}\p{Katakana}\p{Hangul}]")
_LATIN_WORD = regex.compile(r"\p{Latin}+")


def question_language(question: str) -> Language:
    """By script alone: `Aurora 3 的保修期是多长？` is Chinese, a Chinese name in an English question is not."""
    han = len(_HAN.findall(question))
    if not han or _KANA_OR_HANGUL.search(question):
        return "en"
    return "zh" if han >= len(_LATIN_WORD.findall(question)) else "en"
