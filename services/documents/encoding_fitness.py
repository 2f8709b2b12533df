"""How much a decoded text reads like real text in its encoding's language.

East Asian standards put their frequent characters into a first level of code rows, so the share of characters from
that level tells encodings apart on as few as four characters, where statistical detectors still guess at random.
"""

from __future__ import annotations

import regex

CANDIDATES = ("gb18030", "big5hkscs", "cp932", "euc_kr", "cp1252", "cp1251", "cp1250")
"""Tried in this order; on equal fitness the earlier wins."""

_FIRST_LEVEL = {
    "gb18030": ("gb18030", 0xB0, 0xD7),
    "big5hkscs": ("big5hkscs", 0xA4, 0xC6),
    "cp932": ("cp932", 0x88, 0x97),
}
_KANA = regex.compile(r"[\u3040-\u30ff]")
_HANGUL = regex.compile(r"[\uac00-\ud7a3]")
_WIDE_MARKS = regex.compile(r"[\u3000-\u3017\uff01-\uff5e\u2010-\u2026\u00b7\u00d7]")
_LATIN_WORD_PARTS = regex.compile(r"(?<=[A-Za-z])[À-ÿŒœŠšŽžŸ]|[À-ÿŒœŠšŽžŸ](?=[A-Za-z])|[“”‘’–—€…•™©®°§«»¿¡£ªº·\u00a0]")
_CENTRAL_EUROPEAN = regex.compile(r"(?<=[A-Za-z])[\p{Latin}--[A-Za-z]]|[\p{Latin}--[A-Za-z]](?=[A-Za-z])", regex.V1)
_CYRILLIC_WORDS = regex.compile(r"\b[А-ЯЁ]?[а-яё]+\b|\b[А-ЯЁ]+\b")
_SAMPLE_CHARACTERS = 5_000


def naturalness(text: str, encoding: str) -> float:
    """The share (0..1) of the non-ASCII characters that a real text in this encoding would have."""
    high = [character for character in text if character > "\x7f"][:_SAMPLE_CHARACTERS]
    if not high:
        return 1.0
    if encoding in _FIRST_LEVEL:
        return sum(_is_frequent(character, encoding) for character in high) / len(high)
    if encoding == "euc_kr":
        # Chinese text uses the rows behind the Hangul block in every sentence; Korean text never does.
        share = sum(1 for character in high if _HANGUL.match(character) or _WIDE_MARKS.match(character)) / len(high)
        return share + 0.05 if len(high) >= 20 and share > 0.97 else share
    joined = text[: 20 * _SAMPLE_CHARACTERS]
    count = sum(1 for character in joined if character > "\x7f") or 1
    if encoding == "cp1252":
        return len(_LATIN_WORD_PARTS.findall(joined)) / count
    if encoding == "cp1250":
        return 0.95 * len(_CENTRAL_EUROPEAN.findall(joined)) / count
    return 0.9 * sum(len(word) for word in _CYRILLIC_WORDS.findall(joined)) / count


def _is_frequent(character: str, encoding: str) -> bool:
    if _WIDE_MARKS.match(character):
        return True
    if encoding == "cp932" and _KANA.match(character):
        return True
    codec, first, last = _FIRST_LEVEL[encoding]
    code = character.encode(codec, "replace")
    return len(code) == 2 and first <= code[0] <= last and (encoding != "gb18030" or code[1] >= 0xA1)
