"""Text whose glyphs are mapped to the wrong characters reads like a cipher and must not be indexed as good."""

from __future__ import annotations

import regex

_LEAST_CHARACTERS = 16
_UNMAPPED = regex.compile(r"[\ue000-\uf8ff\ufffd\U000f0000-\U0010ffff]|\(cid:\d+\)")
_MARK_IN_WORD = regex.compile(r"(?<=\p{L})[\[\]{}()<>\\^~|#$%&*+=@](?=\p{L})|(?<=\p{L})[\[\]\\^~|](?=[\[\]\\^~|\p{L}])")
_UNMAPPED_SHARE = 0.25
_MARK_SHARE = 0.09


def is_garbled(text: str) -> bool:
    """Whether a page's text has too many unmapped characters, or brackets and the like inside its words."""
    compact = "".join(text.split())
    if len(compact) < _LEAST_CHARACTERS:
        return False
    if len(_UNMAPPED.findall(compact)) > _UNMAPPED_SHARE * len(compact):
        return True
    return len(_MARK_IN_WORD.findall(text)) > _MARK_SHARE * len(compact)
