"""The code-point map that stands before the tokenizer, and the way back from its offsets to the original text."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SURROGATES = range(0xD800, 0xE000)


class NormalText:
    """Replaces code points by their normal forms (NFKC, white space to spaces, control characters dropped).

    NUL and lone surrogates, which no UTF-8 tokenizer takes, become nothing and a space.
    """

    def __init__(self, forms: dict[int, str]) -> None:
        self._forms = {0: "", **dict.fromkeys(SURROGATES, " "), **forms}
        self._odd_lengths = {point: len(form) for point, form in self._forms.items() if len(form) != 1}

    def of(self, text: str) -> str:
        return text.translate(self._forms)

    def sources(self, text: str) -> NDArray[np.int64] | None:
        """For each character of `of(text)` the index of the one in `text` it came from; None when that is itself."""
        odd = [(index, length) for index, point in enumerate(map(ord, text)) if (length := self._length(point)) != 1]
        if not odd:
            return None
        lengths = np.ones(len(text), np.int64)
        for index, length in odd:
            lengths[index] = length
        return np.repeat(np.arange(len(text)), lengths)

    def _length(self, point: int) -> int:
        return self._odd_lengths.get(point, 1)
