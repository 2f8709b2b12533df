"""Atoms: the pieces of a text that chunks are packed from and that are not cut further."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple

from services.documents.hard_cut import hard_cut
from services.documents.sentence_ends import CutKind, cut_places
from services.documents.token_counter import TokenCounter, count_in_batches


class Strength(IntEnum):
    """How good a place the start of an atom is to cut at."""

    GLUED = 0  # only when nothing else is left: after a heading, after a table's header
    HARD = 1
    CLAUSE = 2
    LINE = 3
    SENTENCE = 4
    BLOCK = 5


class Atom(NamedTuple):
    """text[start:end], at most its run's bound in tokens; `strength` is that of a cut before it."""

    start: int
    end: int
    strength: Strength
    tokens: int = 0
    run: int = 0


_FINER: tuple[tuple[CutKind, Strength], ...] = (
    ("sentence", Strength.SENTENCE),
    ("line", Strength.LINE),
    ("clause", Strength.CLAUSE),
)
_LONG_BLOCK_CHARACTERS_PER_TOKEN = 5
"""A block longer than this many characters a token of the bound is cut at its sentences without being counted first."""
_LONG_CHARACTERS_PER_TOKEN = 12
"""The same for anything that is not a whole block."""


def counted_atoms(text: str, atoms: Iterable[Atom], counter: TokenCounter, bounds: Sequence[int]) -> list[Atom]:
    """The atoms with their token counts; those above the bound of their run (`bounds[atom.run]`) are cut at sentences,
    then lines, then clauses, then words."""
    todo = list(atoms)
    for by, inner in (*_FINER, (None, Strength.HARD)):
        todo = _count_unknown(text, todo, counter, bounds)
        if all(0 < atom.tokens <= bounds[atom.run] for atom in todo):
            break
        finer: list[Atom] = []
        for atom in todo:
            if 0 < atom.tokens <= bounds[atom.run]:
                finer.append(atom)
            elif by is None:
                finer.extend(_hard_atoms(text, atom, counter, bounds[atom.run]))
            else:
                finer.extend(_split(text, atom, by, inner))
        todo = finer
    return todo


def _count_unknown(text: str, atoms: list[Atom], counter: TokenCounter, bounds: Sequence[int]) -> list[Atom]:
    """Atoms that are surely too long stay uncounted: they are cut first."""
    unknown = [number for number, atom in enumerate(atoms) if not atom.tokens and not _is_long(atom, bounds[atom.run])]
    counts = count_in_batches(counter, [text[atoms[number].start : atoms[number].end] for number in unknown])
    for number, count in zip(unknown, counts, strict=True):
        atoms[number] = atoms[number]._replace(tokens=max(count, 1))
    return atoms


def _is_long(atom: Atom, bound: int) -> bool:
    block = atom.strength == Strength.BLOCK
    return atom.end - atom.start > bound * (_LONG_BLOCK_CHARACTERS_PER_TOKEN if block else _LONG_CHARACTERS_PER_TOKEN)


def _split(text: str, atom: Atom, by: CutKind, inner: Strength) -> list[Atom]:
    """The pieces of the atom between its cut places; the first keeps its strength."""
    edges = [atom.start, *cut_places(text, atom.start, atom.end, by), atom.end]
    return [
        Atom(left, right, atom.strength if left == atom.start else inner, 0, atom.run)
        for left, right in pairwise(edges)
        if left < right
    ]


def _hard_atoms(text: str, atom: Atom, counter: TokenCounter, bound: int) -> list[Atom]:
    """Quarters of the bound, so that packing keeps a choice of cuts."""
    pieces = hard_cut(text, atom.start, atom.end, counter, max(bound // 4, 1), bound)
    return [
        Atom(start, end, atom.strength if start == atom.start else Strength.HARD, tokens, atom.run)
        for start, end, tokens in pieces
    ]
