"""Citation marks in a model's text: known numbers stay, in one form; everything that merely looks like one goes.

Known forms are `[1]`, `[1, 2]`, `[1-3]`, `[1][2]`, `([1])`, `【2】` and `【2†source】`; they come out as `[1]`, `[1][2]`.
Numbers that were not supplied, and forms that name something else (`[ID:3]`, `[^4]`, `[source 2]`), come out as
nothing, with the spaces before them. Code is not prose: inside backticks and fences `a[7]` stays as it is.

`CitationStream` does this on text that arrives in pieces and holds back only what may still become a mark. The whole-text
reading is the same stream fed once, so what was streamed is what is stored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import regex

MAX_INLINE_CODE_CHARS = 300
_MAX_RANGE = 20
_MAX_TAIL_CHARS = 40

_NUMBERS = r"\s{0,3}\d{1,9}(?:\s{0,3}[,，、;；–-]\s{0,3}\d{1,9}){0,20}\s{0,3}"
_SOURCE_WORD = (
    r"(?i:id|ids|doc|docs|document|source|sources|passage|passages|ref|reference|citation|cite|chunk|context|"
    r"文档|文件|来源|來源|段落|资料|資料|引用|参考|參考|출처|出典)"
)
_NAMED = (
    rf"\s?(?:\^\s?[\w-]{{1,20}}|{_SOURCE_WORD}\s?[#:：.\-_]?\s?[\w-]{{0,40}}\d[\w-]{{0,40}}"
    r"(?:\s?,\s?[\w:-]{1,40}){0,10})\s?"
)
_MARK = rf"(?:\[(?:{_NUMBERS}|{_NAMED})\]|【(?:{_NUMBERS}(?:†[^】\n]{{0,40}})?|{_NAMED})】)"
_MARK_AT = regex.compile(rf"{_MARK}|[(（]\s?{_MARK}(?:\s?{_MARK}){{0,10}}\s?[)）]")
_ONE_MARK = regex.compile(_MARK)
_PLAIN = regex.compile(rf"[\[【]({_NUMBERS})(?:†[^】\n]*)?[\]】]")
_INLINE_CODE = regex.compile(rf"`[^`\n]{{0,{MAX_INLINE_CODE_CHARS}}}`")
_STOP = regex.compile(r"[\[【(（`\n]|[ \t]+")
_OPEN_BRACKET = regex.compile(r"[\[【][^\]】]*$")
_RANGE = regex.compile(r"(\d+)\s*[–-]\s*(\d+)")

_FOREIGN_MARK = regex.compile(r"(?<![\w\])])[\[【](\d+(?:\s*[,;–-]\s*\d+)*)[\]】](?!\()")

# A mark that this module wrote.
MARK = regex.compile(r"\[(\d+)\]")


def without_foreign_marks(text: str) -> str:
    """A document's own references would pass for citations of ours: `[12]` becomes `(12)`. Code such as a[0] stays."""
    replaced: str = _FOREIGN_MARK.sub(r"(\1)", text)
    return replaced


def numbers_in(mark: str) -> list[int]:
    """The numbers of a plain mark, ranges spelled out; none for the forms that name something else."""
    plain = _PLAIN.fullmatch(mark)
    if plain is None:
        return []

    def spelled_out(match: regex.Match[str]) -> str:
        low, high = int(match.group(1)), int(match.group(2))
        return ",".join(map(str, range(low, min(high, low + _MAX_RANGE) + 1))) if low < high else match.group()

    return [int(number) for number in regex.findall(r"\d+", _RANGE.sub(spelled_out, plain.group(1)))]


class CitationStream:
    """Feed deltas, get text whose only marks are supplied numbers. `close` gives what was held back.

    The concatenation of all that `feed` and `close` gave is the same for every way of cutting the text into deltas.
    `marks` are the marks in it: (start, end, number), in order; what looks like one inside code is none.
    """

    def __init__(self, supplied: Collection[int]) -> None:
        self._supplied = frozenset(supplied)
        self.marks: list[tuple[int, int, int]] = []
        self._held = ""
        self._given = 0
        self._tail = ""
        self._in_fence = False
        self._at_line_start = True
        self._swallow_spaces = False

    def feed(self, delta: str) -> str:
        self._held += delta
        return self._drain(final=False)

    def close(self) -> str:
        return self._drain(final=True)

    def _drain(self, *, final: bool) -> str:
        out: list[str] = []
        text, position = self._held, 0
        while position < len(text):
            step = self._step(text, position, final)
            if step is None:
                break
            piece, position = step
            if piece:
                out.append(piece)
                self._given += len(piece)
                self._tail = (self._tail + piece)[-_MAX_TAIL_CHARS:]
                self._at_line_start = piece.endswith("\n") or (self._at_line_start and piece.isspace())
        self._held = text[position:]
        return "".join(out)

    def _step(self, text: str, position: int, final: bool) -> tuple[str, int] | None:
        """(what comes out, where reading goes on), or None when more text must come first."""
        char = text[position]
        if char == "`":
            return self._step_code(text, position, final)
        if self._in_fence:
            fence = text.find("`", position)
            end = len(text) if fence < 0 else fence
            return text[position:end], end
        if char in " \t":
            return self._step_spaces(text, position, final)
        self._swallow_spaces = False
        if char in "[【(（":
            return self._step_mark(text, position, final)
        stop = _STOP.search(text, position + 1)
        end = stop.start() if stop else len(text)
        return text[position:end], end

    def _step_code(self, text: str, position: int, final: bool) -> tuple[str, int] | None:
        end = position
        while end < len(text) and text[end] == "`":
            end += 1
        if end == len(text) and not final:
            return None
        self._swallow_spaces = False
        if end - position >= 3:
            self._in_fence = not self._in_fence
            return text[position:end], end
        if end - position == 2 or self._in_fence:
            return text[position:end], end
        code = _INLINE_CODE.match(text, position, partial=not final)
        if code is None:
            return "`", end
        return None if code.partial else (code.group(), code.end())

    def _step_spaces(self, text: str, position: int, final: bool) -> tuple[str, int] | None:
        """Spaces wait for what follows them: a mark that goes takes them along."""
        end = position
        while end < len(text) and text[end] in " \t":
            end += 1
        if end == len(text) and not final:
            return None
        if self._swallow_spaces:
            return "", end
        if end < len(text) and text[end] in "[【(（":
            step = self._step_mark(text, end, final)
            if step is None:
                return None
            piece, after = step
            if not piece.strip():
                return piece, after
            gap = end - position
            self.marks = [(a + gap, b + gap, n) if a >= self._given else (a, b, n) for a, b, n in self.marks]
            return text[position:end] + piece, after
        return text[position:end], end

    def _step_mark(self, text: str, position: int, final: bool) -> tuple[str, int] | None:
        match = _MARK_AT.match(text, position, partial=not final)
        if match is None:
            return text[position], position + 1
        if match.partial:
            return None
        known = [
            number
            for mark in _ONE_MARK.findall(match.group())
            for number in numbers_in(mark)
            if number in self._supplied
        ]
        if known:
            return self._write(dict.fromkeys(known)), match.end()
        self._swallow_spaces = self._at_line_start
        # what stood around the mark must not close up into another one: [[9]7] is not [7]
        return (" " if _OPEN_BRACKET.search(self._tail) else ""), match.end()

    def _write(self, numbers: Iterable[int]) -> str:
        piece = ""
        for number in numbers:
            start = self._given + len(piece)
            piece += f"[{number}]"
            self.marks.append((start, self._given + len(piece), number))
        return piece
