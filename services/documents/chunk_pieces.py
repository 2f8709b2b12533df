"""Pieces: chunks in the making, until their exact token counts are within the bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace

from services.documents.atoms import Atom
from services.documents.embedding_prefix import INPUT_TOKENS, JOINT_TOKENS, embedding_input
from services.documents.graphemes import is_boundary
from services.documents.packing import pack
from services.documents.sections import Run
from services.documents.token_counter import TokenCounter, count_in_batches

_SHRINK = 0.7


@dataclass
class Piece:
    """Atoms of one run that make one chunk. `start` and `end` leave out white space at the edges."""

    run: Run
    atoms: list[Atom]
    prefix: str
    context: str | None
    extra_tokens: int = 0  # of prefix and context
    start: int = -1
    end: int = -1
    tokens: int = 0

    def input(self, text: str) -> str:
        """What the model reads."""
        return embedding_input(self.prefix, self.context, text[self.start : self.end])


def settle(text: str, pieces: list[Piece], counter: TokenCounter, bound: int) -> list[Piece]:
    """The pieces with exact spans and counts, without those that are white space alone.

    A tokenizer may see more tokens in a joined text than in its parts: such a piece is packed again more tightly; a
    single atom gives up its context, then its prefix.
    """
    done: list[Piece] = []
    kept = [piece for piece in pieces if _trim(text, piece)]
    _count(text, kept, counter)
    for piece, room in zip(kept, _rooms(text, kept, counter), strict=True):
        if piece.tokens <= bound and room >= 0:
            done.append(piece)
        elif len(piece.atoms) > 1:
            done.extend(settle(text, _tighter(text, piece), counter, bound))
        elif piece.context or piece.prefix:
            smaller = replace(piece, context=None, prefix=piece.prefix if piece.context else "")
            done.extend(settle(text, [smaller], counter, bound))
        else:
            done.append(piece)
    return done


def _count(text: str, pieces: list[Piece], counter: TokenCounter) -> None:
    """Exact token counts; that of a single atom is known."""
    for piece in pieces:
        piece.tokens = piece.atoms[0].tokens
    joined = [piece for piece in pieces if len(piece.atoms) > 1]
    for piece, count in zip(
        joined, count_in_batches(counter, [text[piece.start : piece.end] for piece in joined]), strict=True
    ):
        piece.tokens = count


def _rooms(text: str, pieces: list[Piece], counter: TokenCounter) -> list[int]:
    """How many tokens each input is below the model's limit. Inputs that are surely below are not counted."""
    rooms = [INPUT_TOKENS - piece.tokens - piece.extra_tokens - JOINT_TOKENS for piece in pieces]
    close = [number for number, room in enumerate(rooms) if room < 0]
    counts = count_in_batches(counter, [pieces[number].input(text) for number in close])
    for number, count in zip(close, counts, strict=True):
        rooms[number] = INPUT_TOKENS - count
    return rooms


def _tighter(text: str, piece: Piece) -> list[Piece]:
    total = sum(atom.tokens for atom in piece.atoms)
    slices = pack(text, piece.atoms, max(int(total * _SHRINK), 1))
    if len(slices) == 1:
        slices = [(0, 1), (1, len(piece.atoms))]
    return [replace(piece, atoms=piece.atoms[first:last]) for first, last in slices]


def _trim(text: str, piece: Piece) -> bool:
    """Set the span; False when nothing but white space is in it. Code keeps its indentation."""
    start, end = piece.atoms[0].start, piece.atoms[-1].end
    while end > start and text[end - 1].isspace() and is_boundary(text, end - 1):
        end -= 1
    if piece.run.kind != "code":
        while start < end and text[start].isspace() and is_boundary(text, start + 1):
            start += 1
    piece.start, piece.end = start, end
    return end > start
