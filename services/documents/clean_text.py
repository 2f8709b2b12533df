"""Text as it may be stored (invariant 10): NFC, no NUL or control character, no lone surrogate."""

from __future__ import annotations

import unicodedata

import regex

_NEWLINES = regex.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_UNWANTED = regex.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ufeff\ufdd0-\ufdef]|[\ufffe\uffff]|[\ufff9-\ufffb]")
_NONCHARACTERS = regex.compile(r"[\U0001fffe\U0001ffff\U0002fffe\U0002ffff\U000ffffe\U000fffff\U0010fffe\U0010ffff]")
_SURROGATES = regex.compile(r"[\ud800-\udfff]")


def _join_surrogates(text: str) -> str:
    """Pairs of halves become their character (what JSON escapes can leave), lone halves U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def clean_text(text: str) -> str:
    """Text fit for a database, an embedder and JSON. Line ends become `\\n`; tabs stay. Idempotent.

    Characters are taken out before normalising, so that a NUL between a letter and its accent does not keep them apart.
    """
    if text.isascii() and text.isprintable():
        return text
    if _SURROGATES.search(text):
        text = _join_surrogates(text)
    text = _NEWLINES.sub("\n", text)
    text = _UNWANTED.sub("", text)
    text = _NONCHARACTERS.sub("", text)
    return text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)


def one_line(text: str) -> str:
    """Cleaned text with every run of white space as one space: titles, headings, cells."""
    return " ".join(clean_text(text).split())
