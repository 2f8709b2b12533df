"""Folding: one written form for texts that a reader would call the same.

Unicode NFKC and full case folding (UAX #15, Unicode chapter 3.13), invisible characters removed, dashes and
apostrophes made ASCII, traditional Chinese characters mapped to simplified ones character by character. The
Chinese map need not be right in every context, it needs to be the same on both sides.
"""

from __future__ import annotations

import unicodedata
from functools import cache, lru_cache

import opencc

_INVISIBLE = [
    0x00AD,
    0x034F,
    0x061C,
    0x115F,
    0x1160,
    0x17B4,
    0x17B5,
    0x180E,
    0x3164,
    0xFEFF,
    0xFFA0,
    *range(0x200B, 0x2010),
    *range(0x202A, 0x202F),
    *range(0x2060, 0x2070),
    *range(0xFE00, 0xFE10),
]
_REMOVE_INVISIBLE: dict[int, None] = dict.fromkeys(_INVISIBLE)
_DASHES = "‐‑‒–—―−﹘﹣－"
_APOSTROPHES = "‘’‛ʼ＇`´"
# Characters whose traditional form also has a life of its own, so opencc leaves them alone without context.
_ALSO_FOLD = {"著": "着", "乾": "干", "裡": "里", "妳": "你", "祇": "只", "覆": "复", "藉": "借", "瞭": "了"}


@cache
def _visible_forms() -> dict[int, str]:
    """Translation table for text that is NFKC and case folded already."""
    han = [chr(point) for point in (*range(0x3400, 0xA000), *range(0x20000, 0x2FA20))]
    simplified = opencc.OpenCC("t2s").convert("\n".join(han)).split("\n")
    table = {ord(char): folded for char, folded in zip(han, simplified, strict=True) if char != folded}
    table |= {ord(char): folded for char, folded in _ALSO_FOLD.items()}
    table |= dict.fromkeys(map(ord, _DASHES), "-") | dict.fromkeys(map(ord, _APOSTROPHES), "'")
    return table


def fold(text: str) -> str:
    """Lengths change: offsets into the folded text say nothing about the original."""
    if text.isascii():
        return text.lower()
    encodable = text.encode("utf-8", "ignore").decode()  # a lone surrogate would stop every engine behind us
    visible = unicodedata.normalize("NFKC", encodable.translate(_REMOVE_INVISIBLE))
    return unicodedata.normalize("NFKC", visible.casefold()).translate(_visible_forms())


@lru_cache(maxsize=65_536)
def without_accents(word: str) -> str:
    """`zürich` -> `zurich`, for Latin letters only: elsewhere a mark makes another letter."""
    if word.isascii():
        return word
    decomposed = unicodedata.normalize("NFD", word)
    if not any("a" <= char <= "z" for char in decomposed):
        return word
    return unicodedata.normalize("NFC", "".join(char for char in decomposed if not unicodedata.combining(char)))


@cache
def _regional_converters() -> tuple[opencc.OpenCC, opencc.OpenCC]:
    return opencc.OpenCC("s2twp"), opencc.OpenCC("tw2sp")


def regional_wordings(text: str) -> list[str]:
    """The same Chinese text in Taiwan's and the mainland's vocabulary, folded, where they differ (数据库: 资料库)."""
    own = fold(text)
    forms = [fold(converter.convert(own)) for converter in _regional_converters()]
    return [form for form in dict.fromkeys(forms) if form != own]
