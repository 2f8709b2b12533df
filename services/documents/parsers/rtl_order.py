"""Hebrew and Arabic text of PDFs in logical order.

Most producers store such text as it looks, and pdfium turns it round; some store it as it is read, and then pdfium's
turn spoils it. Nothing in the file tells which. Word forms do: letters that only end a word, common endings, articles.
"""

from __future__ import annotations

import regex

_RUN = regex.compile(
    r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc](?:[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\s\"'.,־-]*[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc])?"
)
_WORD = regex.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]{3,}")
_ONLY_LAST = set("ךםןףץةى")
_ENDINGS = ("ים", "ות", "וני", "נית", "ית", "יה", "תי", "נו", "ات", "ون", "ين", "ية", "ها")
_BEGINNINGS = ("ال", "وال", "بال")


def restore_logical_order(lines: list[str]) -> list[str]:
    """The lines, their right-to-left runs turned round when the document's words make more sense that way."""
    if not any(_WORD.search(line) for line in lines):
        return lines
    if sum(_score(word) - _score(word[::-1]) for line in lines for word in _WORD.findall(line)) >= 0:
        return lines
    return [_RUN.sub(lambda match: match.group()[::-1], line) for line in lines]


def _score(word: str) -> int:
    score = 3 * (word[-1] in _ONLY_LAST) - 3 * (word[0] in _ONLY_LAST)
    return score + word.endswith(_ENDINGS) + word.startswith(_BEGINNINGS)
