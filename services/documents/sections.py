"""A document as runs of text under their headings: the units inside which chunks are packed."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import Literal

from schemas.parsed_documents import CanonicalDocument, PlacedBlock
from services.documents.atoms import Atom, Strength

SMALL_TABLE_CHARACTERS = 400
"""A table no longer than this stays with the text around it."""


@dataclass
class Section:
    """A heading and what follows it up to the next heading. Level 0 is the text before any heading."""

    level: int
    path: list[str]
    parent: int | None


@dataclass
class Run:
    """Atoms of one kind in one section. `own_headings` is how many last parts of the path its text begins with.

    `header` is the span of the table's header rows, to be repeated as context of the pieces that lack it.
    """

    kind: Literal["text", "table", "code"]
    section: int
    atoms: list[Atom] = field(default_factory=list)
    own_headings: int = 0
    header: tuple[int, int] | None = None
    block: PlacedBlock | None = None


@dataclass
class Outline:
    """A document cut into sections at its headings."""

    sections: list[Section]
    runs: list[Run]


def outline(document: CanonicalDocument, long_code: Container[int]) -> Outline:
    """Sections and runs in reading order. `long_code` holds the starts of code blocks that do not fit into one chunk:
    they become runs of their own, other code stays with the text around it."""
    builder = _OutlineBuilder(document.text, long_code)
    for placed in document.blocks:
        builder.add(placed)
    builder.close_headings()
    return Outline(builder.sections, [run for run in builder.runs if run.atoms])


class _OutlineBuilder:
    def __init__(self, text: str, long_code: Container[int]) -> None:
        self.text = text
        self.long_code = long_code
        self.sections: list[Section] = [Section(0, [], None)]
        self.runs: list[Run] = []
        self.headings: list[PlacedBlock] = []
        self.current = 0

    def add(self, placed: PlacedBlock) -> None:
        kind = placed.block.kind
        if kind == "page_break" or placed.start == placed.end:
            return
        if kind == "heading":
            self._open_section(placed)
        elif kind == "table" and (placed.block.sheet or placed.end - placed.start > SMALL_TABLE_CHARACTERS):
            self._add_table(placed)
        elif kind == "code" and placed.start in self.long_code:
            self._add_code(placed)
        else:
            self._text_run().atoms.extend(self._with_headings(Atom(placed.start, placed.end, Strength.BLOCK)))

    def _open_section(self, placed: PlacedBlock) -> None:
        level = max(placed.block.level, 1)
        parent = self.current
        while self.sections[parent].level >= level:
            parent = self.sections[parent].parent or 0
        # a heading over a heading goes along with it; one that is followed by its equal stands alone
        if self.headings and level <= self.sections[self.current].level:
            self.close_headings()
        title = self.text[placed.start : placed.end].lstrip("#").strip()
        self.sections.append(Section(level, [*self.sections[parent].path, title], parent))
        self.current = len(self.sections) - 1
        self.headings.append(placed)

    def close_headings(self) -> None:
        """Headings with nothing under them become text of their own."""
        if self.headings:
            run = Run("text", self.current, own_headings=len(self.headings))
            run.atoms = [Atom(heading.start, heading.end, Strength.BLOCK) for heading in self.headings]
            self.runs.append(run)
            self.headings = []

    def _text_run(self) -> Run:
        if not self.headings and self.runs and self.runs[-1].kind == "text" and self.runs[-1].section == self.current:
            return self.runs[-1]
        return self._new_run("text")

    def _new_run(self, kind: Literal["text", "table", "code"], block: PlacedBlock | None = None) -> Run:
        run = Run(kind, self.current, own_headings=len(self.headings), block=block)
        self.runs.append(run)
        return run

    def _with_headings(self, atom: Atom) -> Iterator[Atom]:
        """The waiting headings, then the atom, glued."""
        if not self.headings:
            yield atom
            return
        for number, heading in enumerate(self.headings):
            yield Atom(heading.start, heading.end, Strength.GLUED if number else Strength.BLOCK)
        self.headings = []
        yield atom._replace(strength=Strength.GLUED)

    def _add_table(self, placed: PlacedBlock) -> None:
        run = self._new_run("table", placed)
        headers = placed.block.header_rows
        if headers:
            run.header = (placed.row_spans[0][0], placed.row_spans[headers - 1][1])
        for number, (start, end) in enumerate(placed.row_spans):
            if number < headers and number:
                continue
            end = run.header[1] if run.header and number == 0 else end
            strength = Strength.GLUED if headers and number == headers else Strength.LINE
            run.atoms.extend(self._with_headings(Atom(start, end, strength)))

    def _add_code(self, placed: PlacedBlock) -> None:
        """Long code: its lines without the fences, so that no piece holds half a pair; the language is the context."""
        self.close_headings()
        run = self._new_run("code", placed)
        start = self.text.index("\n", placed.start) + 1
        stop = self.text.rindex("\n", start, placed.end)
        after_blank = True
        while start < stop:
            end = self.text.find("\n", start, stop)
            end = stop if end < 0 else end
            if self.text[start:end].strip():
                run.atoms.append(Atom(start, end, Strength.SENTENCE if after_blank else Strength.LINE))
                after_blank = False
            else:
                after_blank = True
            start = end + 1
