"""Canonical text to chunks.

The laws: a chunk's text is exactly text[start:end]; chunks of text stand in order, do not overlap and leave out nothing
but white space and the fence lines of code that is longer than a chunk; none is above the token bound, nor its
embedding input above the model's; cuts fall where `atoms` allows; the same text gives the same chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from schemas.parsed_documents import CanonicalDocument, ChunkDraft
from schemas.settings import ChunkingSettings
from services.documents.atoms import counted_atoms
from services.documents.chunk_pages import PageFinder
from services.documents.chunk_pieces import Piece, settle
from services.documents.embedding_prefix import (
    CONTEXT_TOKENS,
    INPUT_TOKENS,
    JOINT_TOKENS,
    PrefixWriter,
    embedding_input,
    trimmed,
)
from services.documents.packing import pack
from services.documents.parents import parent_ranges
from services.documents.sections import Outline, Run, outline
from services.documents.summaries import member_summary, sheet_summary
from services.documents.token_counter import TokenCounter, count_in_batches


def chunk_document(
    doc: CanonicalDocument,
    name: str,
    count_tokens: TokenCounter,
    limits: ChunkingSettings,
    members: Sequence[str] = (),
) -> list[ChunkDraft]:
    """The chunks in reading order; a sheet's summary stands before its rows, a container's summary is last.

    `name` stands in for a missing title; `members` are the paths of what a container holds.
    """
    counter = count_tokens
    prefixes = PrefixWriter(doc.title or name, counter)
    plan = outline(doc, _long_code(doc, counter, limits.child_tokens))
    pieces = _pieces(doc.text, plan, prefixes, counter, limits.child_tokens)
    drafts = _drafts(doc, plan, pieces, limits)
    drafts = _with_sheet_summaries(drafts, pieces, plan, prefixes, counter, limits)
    if members:
        drafts.append(_container_summary(doc.title or name, members, prefixes, counter, limits))
    for ordinal, draft in enumerate(drafts):
        draft.ordinal = ordinal
    return drafts


def _long_code(doc: CanonicalDocument, counter: TokenCounter, bound: int) -> set[int]:
    """Starts of the code blocks above the bound."""
    code = [placed for placed in doc.blocks if placed.block.kind == "code"]
    surely = {placed.start for placed in code if placed.end - placed.start > 12 * bound}
    rest = [placed for placed in code if placed.start not in surely]
    counts = count_in_batches(counter, [doc.text[placed.start : placed.end] for placed in rest])
    return surely | {placed.start for placed, count in zip(rest, counts, strict=True) if count > bound}


def _pieces(text: str, plan: Outline, prefixes: PrefixWriter, counter: TokenCounter, child_tokens: int) -> list[Piece]:
    contexts = [_context(text, run, counter) for run in plan.runs]
    context_tokens = count_in_batches(counter, [context or "" for context in contexts])
    bounds: list[int] = []
    for run, used in zip(plan.runs, context_tokens, strict=True):
        room = INPUT_TOKENS - JOINT_TOKENS - used - prefixes.write(plan.sections[run.section].path)[1]
        bounds.append(min(child_tokens, room))
    loose = [atom._replace(run=number) for number, run in enumerate(plan.runs) for atom in run.atoms]
    pieces: list[Piece] = []
    for number, group in groupby(counted_atoms(text, loose, counter, bounds), key=lambda atom: atom.run):
        atoms = list(group)
        run = plan.runs[number]
        path = plan.sections[run.section].path
        for first, last in pack(text, atoms, bounds[number]):
            prefix, used = prefixes.write(path[: len(path) - run.own_headings] if first == 0 else path)
            repeats_header = run.header is None or atoms[first].start > run.header[0]
            context = contexts[number] if repeats_header else None
            used += context_tokens[number] if context else 0
            pieces.append(Piece(run, atoms[first:last], prefix, context, used))
    return settle(text, pieces, counter, child_tokens)


def _context(text: str, run: Run, counter: TokenCounter) -> str | None:
    """A table's header rows, the language of long code."""
    if run.header is not None:
        return trimmed(text[run.header[0] : run.header[1]], CONTEXT_TOKENS, counter) or None
    if run.kind == "code" and run.block is not None:
        return trimmed(run.block.block.language or "", CONTEXT_TOKENS, counter) or None
    return None


def _drafts(doc: CanonicalDocument, plan: Outline, pieces: list[Piece], limits: ChunkingSettings) -> list[ChunkDraft]:
    pages = PageFinder(doc)
    parents = parent_ranges(
        plan.sections, [piece.run.section for piece in pieces], [piece.tokens for piece in pieces], limits.parent_tokens
    )
    drafts: list[ChunkDraft] = []
    for piece, (first, last) in zip(pieces, parents, strict=True):
        page_start, page_end = pages.of(piece.start, piece.end)
        drafts.append(
            ChunkDraft.model_construct(
                ordinal=0,
                start=piece.start,
                end=piece.end,
                page_start=page_start,
                page_end=page_end,
                heading_path=plan.sections[piece.run.section].path,
                parent_start=pieces[first].start,
                parent_end=pieces[last - 1].end,
                context=piece.context,
                kind=pages.kind(piece.run, piece.atoms[0].start, piece.end),
                text=doc.text[piece.start : piece.end],
                embedding_input=piece.input(doc.text),
                tokens=piece.tokens,
            )
        )
    return drafts


def _summary(text: str, path: list[str], prefix: str, counter: TokenCounter, bound: int) -> ChunkDraft:
    text = trimmed(text, bound, counter)
    return ChunkDraft(
        ordinal=0,
        start=None,
        end=None,
        heading_path=path,
        kind="summary",
        text=text,
        embedding_input=embedding_input(prefix, None, text),
        tokens=counter.count([text])[0],
    )


def _with_sheet_summaries(
    drafts: list[ChunkDraft],
    pieces: list[Piece],
    plan: Outline,
    prefixes: PrefixWriter,
    counter: TokenCounter,
    limits: ChunkingSettings,
) -> list[ChunkDraft]:
    result: list[ChunkDraft] = []
    seen: set[int] = set()
    for draft, piece in zip(drafts, pieces, strict=True):
        run = piece.run
        if run.block is not None and run.block.block.sheet and id(run) not in seen:
            seen.add(id(run))
            path = plan.sections[run.section].path
            result.append(
                _summary(sheet_summary(run.block.block), path, prefixes.write(path)[0], counter, limits.child_tokens)
            )
        result.append(draft)
    return result


def _container_summary(
    name: str, members: Sequence[str], prefixes: PrefixWriter, counter: TokenCounter, limits: ChunkingSettings
) -> ChunkDraft:
    """Lists as many members as the bound allows."""
    low, high = 0, len(members)
    while low < high:
        middle = (low + high + 1) // 2
        if counter.count([member_summary(name, members, middle)])[0] <= limits.child_tokens:
            low = middle
        else:
            high = middle - 1
    return _summary(member_summary(name, members, low), [], prefixes.write([])[0], counter, limits.child_tokens)
