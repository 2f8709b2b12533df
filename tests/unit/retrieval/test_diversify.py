from __future__ import annotations

import numpy as np

from services.retrieval.diversify import collapse_near_duplicates, diversify, marginal_relevance_order
from services.retrieval.near_duplicates import group_near_duplicates
from tests.unit.retrieval.chunk_builders import chunks_of, hit

LONG = (
    "Every employee hands in the claim within thirty days of coming home, with all receipts, on the form that the "
    "finance team keeps on the shared drive, and the lead approves it within five working days of receiving it there."
)


def test_a_second_hit_of_the_same_direction_gives_way_to_another_one() -> None:
    chunks = chunks_of("one two three", ["one", "two", "three"])
    hits = [hit(chunks[0], 1.0), hit(chunks[1], 0.95), hit(chunks[2], 0.8)]
    directions = {"d1-c0": [1.0, 0.0], "d1-c1": [1.0, 0.01], "d1-c2": [0.0, 1.0]}
    vectors = {chunk: np.array(direction, dtype=np.float32) for chunk, direction in directions.items()}
    assert marginal_relevance_order(hits, vectors, 0.7) == [0, 2, 1]
    assert marginal_relevance_order(hits, vectors, 1.0) == [0, 1, 2]


def test_hits_without_vectors_keep_their_order() -> None:
    chunks = chunks_of("one two three", ["one", "two", "three"])
    hits = [hit(chunk, 12.0 - number) for number, chunk in enumerate(chunks)]
    assert marginal_relevance_order(hits, {}, 0.7) == [0, 1, 2]


def test_near_duplicates_of_other_documents_collapse_and_keep_their_citations() -> None:
    first = chunks_of(LONG, [LONG], "d1")[0]
    changed = LONG.replace("there.", "then.")
    second = chunks_of(changed, [changed], "d2")[0]
    other = chunks_of("Something else.", ["Something else."], "d3")[0]
    kept = diversify([hit(first, 0.9), hit(second, 0.8), hit(other, 0.7)], {}, limit=5)
    assert [one.chunk.document_id for one in kept] == ["d1", "d3"]
    assert [(d.document_id, d.chunk_id, d.start) for d in kept[0].duplicates] == [("d2", "d2-c0", 0)]


def test_chinese_texts_are_compared_by_characters() -> None:
    text = "报销单须在费用发生后四十五天内提交，超过期限的须由财务总监书面同意，部门主管在三个工作日内审批完成。"
    assert group_near_duplicates([text, text.replace("完成", "完毕"), "试用期为六个月，期满后转正。"]) == [[0, 1], [2]]


def test_texts_that_differ_in_a_figure_are_not_duplicates() -> None:
    this_year, last_year = LONG + " The limit is 1,650 a night.", LONG + " The limit is 1,450 a night."
    assert group_near_duplicates([this_year, last_year]) == [[0], [1]]


def test_texts_below_the_threshold_stay_apart() -> None:
    half = LONG.replace("within thirty days of coming home", "before the end of the month")
    assert group_near_duplicates([LONG, half]) == [[0], [1]]
    assert group_near_duplicates(["", ""]) == [[0], [1]]


def test_a_collapsed_hit_hands_on_what_it_had_collapsed() -> None:
    copies = [chunks_of(LONG, [LONG], name)[0] for name in ("d1", "d2", "d3")]
    inner = collapse_near_duplicates([hit(copies[1]), hit(copies[2])])
    outer = collapse_near_duplicates([hit(copies[0]), *inner])
    assert [duplicate.document_id for duplicate in outer[0].duplicates] == ["d2", "d3"]
