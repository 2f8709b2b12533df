"""Laws that hold for the chunks of any text."""

from __future__ import annotations

import random
from itertools import pairwise

import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.parsed_documents import Block, CanonicalDocument, ChunkDraft, ParsedDocument
from schemas.settings import ChunkingSettings
from services.documents.canonical_text import canonicalise
from services.documents.chunking import chunk_document
from services.documents.embedding_prefix import INPUT_TOKENS
from services.documents.graphemes import is_boundary
from tests.unit.documents.word_tokens import WordTokens

_CLUSTERS = [
    "🙂", "👩‍👩‍👧", "e\u0301", "é", "각", "நி", "🇩🇪", "好", "。", "！", " ", "\n", ". ", ", ", "word", "Word", "a", "[t](http://x.y/z)",
    "$a+b$", "`c d`", "…", "\u200d", "\u0301", "x" * 40,
]  # fmt: skip
_texts = st.lists(st.sampled_from(_CLUSTERS) | st.text(max_size=3), max_size=250).map("".join)
_cells = st.text(alphabet="ab |\n好🙂", max_size=30)


@st.composite
def _blocks(draw: st.DrawFn) -> Block:
    kind = draw(
        st.sampled_from(["heading", "paragraph", "paragraph", "list_item", "quote", "code", "table", "page_break"])
    )
    if kind == "table":
        rows = draw(st.lists(st.lists(_cells, min_size=1, max_size=4), min_size=1, max_size=40))
        sheet = draw(st.sampled_from([None, "Sheet"]))
        return Block(kind="table", rows=rows, header_rows=draw(st.integers(0, 2)), sheet=sheet)
    text = draw(_texts)
    if kind == "heading":
        text = text[:80]
    return Block.model_validate({"kind": kind, "text": text, "level": draw(st.integers(0, 4))})


_documents = st.lists(_blocks(), max_size=12).map(
    lambda blocks: ParsedDocument(media_type="x", parser="x", blocks=blocks)
)
_bounds = st.sampled_from([16, 24, 64, 256])


def _cut(document: CanonicalDocument, bound: int) -> list[ChunkDraft]:
    return chunk_document(document, "a file", WordTokens(), ChunkingSettings(child_tokens=bound, parent_tokens=200))


def _cited(chunks: list[ChunkDraft]) -> list[tuple[int, int, ChunkDraft]]:
    return [(chunk.start, chunk.end, chunk) for chunk in chunks if chunk.start is not None and chunk.end is not None]


@given(_documents, _bounds)
@settings(max_examples=300, deadline=None)
def test_chunks_are_exact_ordered_bounded_and_leave_out_nothing_but_space_and_fences(
    parsed: ParsedDocument, bound: int
) -> None:
    document = canonicalise(parsed)
    counter = WordTokens()
    chunks = _cut(document, bound)
    cited = _cited(chunks)
    assert [chunk.ordinal for chunk in chunks] == list(range(len(chunks)))
    for start, end, chunk in cited:
        assert chunk.text == document.text[start:end]
        assert chunk.text.strip()
        assert chunk.tokens == counter.count([chunk.text])[0] or chunk.tokens == 1
        assert chunk.embedding_input.endswith(chunk.text)
        assert chunk.parent_start is not None
        assert chunk.parent_end is not None
        assert chunk.parent_start <= start < end <= chunk.parent_end
    assert all(chunk.tokens <= bound for chunk in chunks)
    assert all(counter.count([chunk.embedding_input])[0] <= INPUT_TOKENS for chunk in chunks)
    for (_, before, _), (after, _, _) in pairwise(cited):
        assert before <= after
    covered = [0, *(place for start, end, _ in cited for place in (start, end)), len(document.text)]
    for start, end in zip(covered[::2], covered[1::2], strict=True):
        left_out = document.text[start:end]
        assert not left_out.strip() or regex.fullmatch(r"\s*(`{3,}[^\n]*\s*)+", left_out)


@given(_documents, _bounds)
@settings(max_examples=200, deadline=None)
def test_no_edge_of_a_chunk_is_inside_a_grapheme(parsed: ParsedDocument, bound: int) -> None:
    document = canonicalise(parsed)
    longest = max((len(match.group()) for match in regex.finditer(r"\X", document.text)), default=0)
    for start, end, _ in _cited(_cut(document, bound)):
        assert longest > 12 or (is_boundary(document.text, start) and is_boundary(document.text, end))


@given(_documents)
@settings(max_examples=150, deadline=None)
def test_rows_that_fit_the_bound_are_never_cut(parsed: ParsedDocument) -> None:
    document = canonicalise(parsed)
    counter = WordTokens()
    edges = {edge for start, end, _ in _cited(_cut(document, 64)) for edge in (start, end)}
    for placed in document.blocks:
        for number, (start, end) in enumerate(placed.row_spans):
            header = number < placed.block.header_rows
            if not header and counter.count([document.text[start:end]])[0] <= 64:
                assert not any(start < edge < end for edge in edges)


@given(_documents)
@settings(max_examples=50, deadline=None)
def test_the_same_text_gives_the_same_chunks(parsed: ParsedDocument) -> None:
    document = canonicalise(parsed)
    assert _cut(document, 64) == _cut(document, 64)


def test_is_boundary_agrees_with_the_cluster_pattern() -> None:
    random_source = random.Random(7)
    for _ in range(300):
        text = "".join(random_source.choices([*_CLUSTERS, "\r", "\u0600", "ि", "ᄀ", "ᅡ"], k=40))
        ends = {0, *(match.end() for match in regex.finditer(r"\X", text))}
        assert [is_boundary(text, place) for place in range(len(text) + 1)] == [
            place in ends for place in range(len(text) + 1)
        ]


def test_work_grows_with_the_length_of_the_text_not_faster() -> None:
    counts = []
    for length in (50_000, 100_000):
        counter = WordTokens()
        parsed = ParsedDocument(media_type="x", parser="x", blocks=[Block(kind="paragraph", text="x" * length)])
        chunk_document(canonicalise(parsed), "a", counter, ChunkingSettings())
        counts.append(counter.characters)
    assert counts[1] <= 2.2 * counts[0]
