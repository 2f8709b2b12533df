from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from schemas.passages import Passage, PassageChunk
from schemas.settings import RetrievalSettings
from services.retrieval.assemble import assemble
from services.retrieval.passage_ranges import cite, part_holding
from tests.unit.retrieval.chunk_builders import chunks_of, hit

PLAIN = RetrievalSettings(grow_below_chars=0, context_tokens=200)


def assert_exact(passage: Passage, chunks: list[PassageChunk], text: str) -> None:
    by_id = {chunk.chunk_id: chunk for chunk in chunks}
    for part in passage.parts:
        piece = passage.text[part.passage_start : part.passage_end]
        assert piece == by_id[part.chunk_id].text == text[part.start : part.end]


def paragraphs(count: int, words: int = 30) -> list[str]:
    return [f"Paragraph {n} begins. " + "filler " * (words - 4) + f"ends{n}." for n in range(count)]


def test_hits_beside_each_other_become_one_passage_at_the_better_rank() -> None:
    pieces = paragraphs(6)
    text = "\n\n".join(pieces)
    chunks = chunks_of(text, pieces)
    passages = assemble([hit(chunks[4], 0.9), hit(chunks[0], 0.8), hit(chunks[3], 0.7)], [], PLAIN)
    assert [passage.hit_chunk_ids for passage in passages] == [["d1-c4", "d1-c3"], ["d1-c0"]]
    assert [passage.n for passage in passages] == [1, 2]
    assert passages[0].text == text[chunks[3].start : chunks[4].end]
    assert passages[0].score == 0.9


def test_a_short_hit_grows_with_its_neighbours_up_to_the_bound() -> None:
    pieces = [f"Short sentence number {n} of this page stands here for itself." * 4 for n in range(9)]
    chunks = chunks_of("\n\n".join(pieces), pieces)
    settings = RetrievalSettings(context_tokens=210)
    (passage,) = assemble([hit(chunks[4])], chunks, settings)
    assert len(chunks[4].text) < settings.grow_below_chars
    assert settings.grow_below_chars <= len(passage.text) <= settings.grow_to_chars + 4
    assert "number 4" in passage.text


def test_growth_takes_its_own_section_before_the_next_one() -> None:
    pieces = ["Old section text stands here. " * 6, "The hit is short.", "Next section text is here. " * 6]
    text = "\n\n".join(pieces)
    chunks = chunks_of(text, pieces)
    low, high = chunks[0].start, chunks[1].end
    chunks[1] = chunks[1].model_copy(update={"parent_start": low, "parent_end": high})
    (passage,) = assemble([hit(chunks[1])], chunks, RetrievalSettings(grow_to_chars=250))
    assert [part.chunk_id for part in passage.parts] == ["d1-c0", "d1-c1"]


def test_the_section_around_a_hit_fills_what_budget_is_left() -> None:
    pieces = paragraphs(10)
    text = "\n\n".join(pieces)
    chunks = [
        chunk.model_copy(update={"parent_start": 0, "parent_end": text.index("ends5.") + 6, "tokens": 60})
        for chunk in chunks_of(text, pieces)
    ]
    settings = RetrievalSettings(grow_below_chars=0, context_tokens=250)
    (passage,) = assemble([hit(chunks[2])], chunks, settings)
    assert passage.tokens == 240
    (passage,) = assemble([hit(chunks[2])], chunks, RetrievalSettings(grow_below_chars=0))
    assert [part.chunk_id for part in passage.parts] == [f"d1-c{n}" for n in range(6)]


def test_chunks_that_are_not_known_are_never_bridged() -> None:
    pieces = paragraphs(4)
    chunks = chunks_of("\n\n".join(pieces), pieces)
    passages = assemble([hit(chunks[0]), hit(chunks[2])], [chunks[0], chunks[2]], RetrievalSettings())
    assert [len(passage.parts) for passage in passages] == [1, 1]


def test_versions_never_mix() -> None:
    pieces = paragraphs(2)
    chunks = chunks_of("\n\n".join(pieces), pieces)
    newer = chunks[1].model_copy(update={"document_version": 2})
    passages = assemble([hit(chunks[0]), hit(newer)], [], RetrievalSettings())
    assert [(passage.document_version, len(passage.parts)) for passage in passages] == [(1, 1), (2, 1)]


def test_the_first_passage_stays_even_when_it_breaks_the_budget_and_later_ones_must_fit() -> None:
    big, small = "big " * 2_000, "small one."
    first, second = chunks_of(big, [big], "d1")[0], chunks_of(small, [small], "d2")[0]
    third = chunks_of(big, [big], "d3")[0]
    passages = assemble([hit(first), hit(second), hit(third)], [], RetrievalSettings(context_tokens=2_010))
    assert [passage.document_id for passage in passages] == ["d1", "d2"]


def test_at_most_the_configured_number_of_passages() -> None:
    hits = [hit(chunks_of("Some text.", ["Some text."], f"d{n}")[0]) for n in range(20)]
    assert [passage.n for passage in assemble(hits, [], RetrievalSettings(passages=3))] == [1, 2, 3]


def test_overlapping_chunks_are_joined_without_repeating_and_both_own_the_overlap() -> None:
    text = "Alpha beta. Gamma delta. Epsilon zeta."
    chunks = chunks_of(text, ["Alpha beta. Gamma delta.", "Gamma delta. Epsilon zeta."])
    (passage,) = assemble([hit(chunks[0]), hit(chunks[1])], [], PLAIN)
    assert passage.text == text
    assert_exact(passage, chunks, text)
    assert part_holding(passage, 12, 38).chunk_id == "d1-c1"  # type: ignore[union-attr]


def test_a_summary_hit_stands_for_the_text_that_follows_it_and_is_never_cited() -> None:
    text = "| Name | Price |\n| --- | --- |\n| Kite | 300 |"
    table = chunks_of(text, [text])[0].model_copy(update={"ordinal": 5, "kind": "table"})
    summary = PassageChunk(
        chunk_id="s", document_id="d1", document_version=1, ordinal=4, text="A sheet of prices.", kind="summary"
    )
    (passage,) = assemble([hit(summary)], [table], RetrievalSettings())
    assert (passage.n, passage.context, passage.text) == (1, "A sheet of prices.", text)
    (alone,) = assemble([hit(summary)], [], RetrievalSettings())
    assert (alone.n, alone.parts, alone.text) == (0, [], "A sheet of prices.")


def test_a_passage_carries_pages_headings_title_and_date() -> None:
    pieces = paragraphs(2)
    updated = datetime(2026, 3, 1, tzinfo=UTC)
    chunks = chunks_of("\n\n".join(pieces), pieces, heading_path=["A", "B"], updated_at=updated)
    chunks = [chunk.model_copy(update={"page_start": n + 3, "page_end": n + 3}) for n, chunk in enumerate(chunks)]
    (passage,) = assemble([hit(chunks[0]), hit(chunks[1])], [], RetrievalSettings())
    assert (passage.page_start, passage.page_end, passage.heading_path) == (3, 4, ["A", "B"])
    assert (passage.title, passage.updated_at) == ("Title of d1", updated)
    citation = cite(passage, passage.text.index("Paragraph 1"), passage.text.index("ends1."))
    assert (citation.page_start, citation.chunk_id) == (4, "d1-c1")


@given(st.data())
def test_every_character_of_a_passage_is_traced_to_its_exact_place_in_the_text(data: st.DataObject) -> None:
    sentences = data.draw(st.lists(st.text("abc 报销🙂é.", min_size=1, max_size=40), min_size=1, max_size=12))
    gaps = data.draw(st.lists(st.sampled_from(["", " ", "\n", "\n\n"]), min_size=12, max_size=12))
    text, chunks = "", []
    for ordinal, (piece, gap) in enumerate(zip(sentences, gaps, strict=False)):
        chunks.append(
            PassageChunk(
                chunk_id=f"c{ordinal}", document_id="d", document_version=1, ordinal=ordinal, text=piece,
                start=len(text), end=len(text) + len(piece),
            )
        )  # fmt: skip
        text += piece + gap
    hits = data.draw(st.lists(st.sampled_from(chunks), min_size=1, max_size=5, unique_by=lambda chunk: chunk.chunk_id))
    known = data.draw(st.lists(st.sampled_from(chunks), max_size=12))
    passages = assemble([hit(one) for one in hits], known, RetrievalSettings())
    assert {one.chunk_id for one in hits} == {chunk_id for p in passages for chunk_id in p.hit_chunk_ids}
    seen = [part.chunk_id for passage in passages for part in passage.parts]
    assert len(seen) == len(set(seen))
    for passage in passages:
        assert_exact(passage, chunks, text)
        covered = {i for part in passage.parts for i in range(part.passage_start, part.passage_end)}
        assert all(passage.text[i].isspace() for i in set(range(len(passage.text))) - covered)
        assert all(left.start < right.start for left, right in pairwise(passage.parts))
        for start, end in ((part.passage_start, part.passage_end) for part in passage.parts):
            citation = cite(passage, start, end)
            assert citation.quote == text[citation.start : citation.end]
