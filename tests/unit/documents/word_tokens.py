"""A tokenizer for tests: words cut into pieces of at most eight letters, East Asian characters one by one."""

from __future__ import annotations

import regex

_TOKEN = regex.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]{1,8}|[^\w\s]|_")


class WordTokens:
    """A TokenCounter that also remembers how many characters it has seen."""

    def __init__(self) -> None:
        self.characters = 0

    def count(self, texts: list[str]) -> list[int]:
        self.characters += sum(map(len, texts))
        return [sum(1 for _ in _TOKEN.finditer(text)) for text in texts]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        self.characters += len(text)
        return [match.span() for match in _TOKEN.finditer(text)]
