from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.passages import LegHit, LegRanking
from schemas.settings import RetrievalSettings
from services.retrieval.fusion import fuse, fuse_min_max, fuse_ranks, leg_weight


def ranking(leg: str, *pairs: tuple[str, float], weight: float = 1.0, query_weight: float = 1.0) -> LegRanking:
    hits = [LegHit(chunk_id=chunk_id, score=score) for chunk_id, score in pairs]
    return LegRanking(leg=leg, hits=hits, weight=weight, query_weight=query_weight)


def ids(fused: list) -> list[str]:  # type: ignore[type-arg]
    return [hit.chunk_id for hit in fused]


def test_min_max_weighs_scaled_scores() -> None:
    fused = fuse_min_max(
        [
            ranking("vector", ("a", 0.9), ("b", 0.85), ("c", 0.8), weight=0.75),
            ranking("keyword", ("c", 20.0), ("b", 10.0), weight=0.25),
        ]
    )
    assert {hit.chunk_id: pytest.approx(hit.score) for hit in fused} == {"a": 0.75, "b": 0.375, "c": 0.25}
    assert fused[1].scores == {"vector": 0.85, "keyword": 10.0}


def test_ranks_fuse_to_one_for_a_hit_that_leads_everywhere() -> None:
    fused = fuse_ranks(
        [ranking("vector", ("a", 0.9), ("b", 0.8), weight=0.7), ranking("keyword", ("a", 3.0), weight=0.3)]
    )
    assert fused[0].score == pytest.approx(1.0)
    assert fused[1].score == pytest.approx(0.7 * 61 / 62)


def test_a_leg_alone_keeps_its_order_and_scores() -> None:
    alone = ranking("keyword", ("x", 12.5), ("y", 3.25))
    for fuse_legs in (fuse_min_max, fuse_ranks):
        fused = fuse_legs([ranking("vector"), alone])
        assert [(hit.chunk_id, hit.score) for hit in fused] == [("x", 12.5), ("y", 3.25)]


def test_a_keyword_hit_that_the_vector_leg_lacks_stays() -> None:
    fused = fuse_min_max([ranking("vector", ("a", 0.9), weight=0.75), ranking("keyword", ("rare", 9.0), weight=0.25)])
    assert ids(fused) == ["a", "rare"]


def test_a_chunk_named_twice_by_a_leg_counts_at_its_best_rank() -> None:
    fused = fuse_ranks([ranking("vector", ("a", 0.9), ("b", 0.8), ("a", 0.7)), ranking("keyword", ("b", 1.0))])
    assert ids(fused) == ["b", "a"]
    assert fused[1].score == pytest.approx(0.5)


def test_a_heavier_query_decides_between_equal_ranks() -> None:
    fused = fuse_ranks(
        [ranking("vector", ("a", 1.0), query_weight=0.7), ranking("vector", ("b", 1.0), query_weight=1.3)]
    )
    assert ids(fused) == ["b", "a"]


def test_no_hits_anywhere_is_an_empty_list() -> None:
    assert fuse_min_max([ranking("vector"), ranking("keyword")]) == []


def test_settings_choose_strategy_and_weights() -> None:
    ranks = RetrievalSettings(fusion="rank")
    assert [leg_weight("vector", ranks), leg_weight("keyword", ranks)] == pytest.approx([0.7, 0.3])
    assert (leg_weight("vector", RetrievalSettings()), leg_weight("keyword", RetrievalSettings())) == (0.75, 0.25)
    legs = [ranking("vector", ("a", 0.9), ("b", 0.1)), ranking("keyword", ("a", 2.0))]
    assert fuse(legs, ranks) == fuse_ranks(legs, 60)
    assert fuse(legs, RetrievalSettings()) == fuse_min_max(legs)


HITS = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.floats(-1e6, 1e6)), max_size=8)
RANKINGS = st.lists(st.tuples(HITS, st.floats(0, 1), st.sampled_from([0.7, 1.0, 1.3])), min_size=2, max_size=5)


@given(RANKINGS)
def test_fused_scores_lie_between_zero_and_one_and_descend(
    drawn: list[tuple[list[tuple[str, float]], float, float]],
) -> None:
    rankings = [
        ranking("leg", *sorted(hits, key=lambda pair: -pair[1]), weight=weight, query_weight=query_weight)
        for hits, weight, query_weight in drawn
    ]
    if sum(bool(one.hits) for one in rankings) < 2:
        return
    for fused in (fuse_min_max(rankings), fuse_ranks(rankings)):
        scores = [hit.score for hit in fused]
        assert all(0 <= score <= 1 for score in scores)
        assert scores == sorted(scores, reverse=True)
        assert set(ids(fused)) == {hit.chunk_id for one in rankings for hit in one.hits}
