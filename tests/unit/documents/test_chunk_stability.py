"""A changed line changes the chunks beside it and no others."""

from __future__ import annotations

import random

import pytest

from schemas.parsed_documents import Block, ParsedDocument
from schemas.settings import ChunkingSettings
from services.documents.canonical_text import canonicalise
from services.documents.chunk_identity import chunk_id, identify
from services.documents.chunking import chunk_document
from tests.unit.documents.word_tokens import WordTokens

_WORDS = [f"{first}{second}" for first in "bdfglmnprst" for second in ("a", "ela", "ino", "oru", "umba", "yx")]


def _sentence(source: random.Random) -> str:
    return " ".join(source.choices(_WORDS, k=source.randint(4, 16))).capitalize() + "."


def _ids(lines: list[str], kind: str) -> list[str]:
    if kind == "table":
        rows = [["name", "text"], *([f"k{len(line)}", line] for line in lines)]
        blocks = [Block(kind="table", rows=rows, header_rows=1)]
    elif kind == "one paragraph":
        blocks = [Block(kind="paragraph", text="\n".join(lines))]
    else:
        blocks = [Block(kind="paragraph", text=line) for line in lines]
    parsed = ParsedDocument(media_type="x", parser="x", blocks=blocks)
    drafts = chunk_document(canonicalise(parsed), "doc", WordTokens(), ChunkingSettings(child_tokens=128))
    return [name for name, _ in identify("doc-1", drafts)]


@pytest.mark.parametrize("kind", ["paragraphs", "one paragraph", "table"])
def test_one_changed_added_or_removed_line_of_five_hundred_chunks_changes_at_most_three(kind: str) -> None:
    source = random.Random(20)
    lines = [_sentence(source) for _ in range(3_400)]
    before = _ids(lines, kind)
    assert len(before) >= 500
    for edit in range(9):
        changed = list(lines)
        place = source.randrange(1, len(lines))
        if edit % 3 == 0:
            changed[place] = _sentence(source)
        elif edit % 3 == 1:
            changed.insert(place, _sentence(source))
        else:
            del changed[place]
        assert len(set(_ids(changed, kind)) - set(before)) <= 3


def test_one_changed_line_among_equal_lines_changes_few_chunks() -> None:
    lines = ["The same line again and again."] * 4_000
    before = set(_ids(lines, "paragraphs"))
    changed = [*lines[:2_000], "Another line.", *lines[2_001:]]
    assert len(set(_ids(changed, "paragraphs")) - before) <= 3


def test_text_that_moved_to_another_place_keeps_its_names() -> None:
    source = random.Random(3)
    first, second = ([_sentence(source) for _ in range(60)] for _ in range(2))
    together = set(_ids([*first, *second], "paragraphs"))
    swapped = set(_ids([*second, *first], "paragraphs"))
    assert len(swapped) > 15
    assert len(swapped - together) <= 5


def test_equal_chunks_have_names_of_their_own_and_documents_share_none() -> None:
    names = [chunk_id("a", "text", 0), chunk_id("a", "text", 1), chunk_id("b", "text", 0), chunk_id("a", "other", 0)]
    assert len(set(names)) == 4
    assert chunk_id("a", "text", 0) == names[0]
