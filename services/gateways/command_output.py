"""Output of a command as text, kept up to a bound: its beginning and its end."""

from __future__ import annotations

import codecs
from collections import deque


class CommandOutput:
    """One stream. Characters that arrive in two pieces are put together; what is not UTF-8 becomes a replacement character."""

    def __init__(self, most_characters: int) -> None:
        self._half = most_characters // 2
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._beginning = ""
        self._end: deque[str] = deque()
        self._end_characters = 0
        self.left_out = 0

    def add(self, data: bytes, *, final: bool = False) -> str:
        """The text that this piece adds."""
        text = self._decoder.decode(data, final)
        room = self._half - len(self._beginning)
        self._beginning += text[:room]
        self._keep_at_end(text[room:] if room > 0 else text)
        return text

    def text(self) -> str:
        gap = f"\n… {self.left_out} characters left out …\n" if self.left_out else ""
        return f"{self._beginning}{gap}{''.join(self._end)}"

    def _keep_at_end(self, text: str) -> None:
        self._end.append(text)
        self._end_characters += len(text)
        while (over := self._end_characters - self._half) > 0:
            first = self._end.popleft()
            self._end_characters -= len(first)
            self.left_out += min(over, len(first))
            if len(first) > over:
                self._end.appendleft(first[over:])
                self._end_characters += len(first) - over
