"""What stands before a chunk's text when it is embedded: title, heading path, context. Kept apart from the text."""

from __future__ import annotations

from services.documents.graphemes import boundary_at_or_before
from services.documents.token_counter import TokenCounter

INPUT_TOKENS = 500
"""Of the model's 512: room for its two special tokens, its passage prefix and a few joints."""
TITLE_TOKENS = 36
PATH_TOKENS = 76
CONTEXT_TOKENS = 112
JOINT_TOKENS = 8
"""Joining texts can make a few tokens more than the parts have."""

_SEPARATOR = " > "
_CHARACTERS_PER_TOKEN = 12


def trimmed(text: str, limit: int, counter: TokenCounter) -> str:
    """The longest beginning of at most `limit` tokens that cuts no grapheme."""
    text = text[: limit * _CHARACTERS_PER_TOKEN]
    while text and counter.count([text])[0] > limit:
        offsets = counter.offsets(text)
        wanted = offsets[limit - 1][1] if len(offsets) > limit else len(text) - 1
        text = text[: boundary_at_or_before(text, min(wanted, len(text) - 1), 0)].rstrip() if wanted else ""
    return text


class PrefixWriter:
    """Writes and remembers the prefixes of one document."""

    def __init__(self, title: str, counter: TokenCounter) -> None:
        self._title = trimmed(title, TITLE_TOKENS, counter)
        self._counter = counter
        self._known: dict[tuple[str, ...], tuple[str, int]] = {}

    def write(self, path: list[str]) -> tuple[str, int]:
        """ "Title > Heading > Heading" and its tokens; the deepest headings are kept when not all fit."""
        key = tuple(path)
        if key not in self._known:
            parts = [self._title] if self._title and self._title not in path[:1] else []
            text = _SEPARATOR.join([*parts, *self._fitting(path)])
            self._known[key] = (text, self._counter.count([text])[0] if text else 0)
        return self._known[key]

    def _fitting(self, path: list[str]) -> list[str]:
        kept: list[str] = []
        left = PATH_TOKENS
        for heading in reversed(path):
            text = trimmed(heading, left, self._counter)
            if not text:
                break
            kept.insert(0, text)
            left -= self._counter.count([text])[0] + 2
            if left <= 0:
                break
        return kept


def embedding_input(prefix: str, context: str | None, text: str) -> str:
    """The parts, kept apart by blank lines: no two different triples of a document give the same input."""
    return "\n\n".join(part for part in (prefix, context, text) if part)
