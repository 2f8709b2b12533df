from __future__ import annotations

from collections import Counter

import pytest

from schemas.passages import SpaceStatistics
from services.retrieval.analyser import terms
from services.retrieval.evidence import (
    EvidenceCandidate,
    combined_statistics,
    evidence_score,
    judge_evidence,
    smoothed_mean,
)

TEXTS = [
    "The trial period is six months.",
    "The help desk opens at seven.",
    "A lost badge costs 200.",
    "年假为十二天。",
]
MEAN = [0.8, 0.6]


def statistics() -> SpaceStatistics:
    counts = Counter(term for text in TEXTS for term in set(terms(text)))
    return SpaceStatistics(chunks=len(TEXTS), mean_vector=MEAN, term_counts=counts)


def test_nothing_found_is_no_evidence_whatever_the_threshold() -> None:
    evidence = judge_evidence("price of X?", [1.0, 0.0], [], statistics(), threshold=-1)
    assert (evidence.score, evidence.enough, evidence.reason) == (0.0, False, "nothing_found")


def test_share_and_centred_cosine_add_up() -> None:
    same = EvidenceCandidate(TEXTS[0], [1.0, 0.6])
    assert evidence_score("trial period?", [1.0, 0.6], [same], statistics()) == pytest.approx(1.5)
    opposite = EvidenceCandidate(TEXTS[1], [0.6, 0.6])
    assert evidence_score("trial period?", [1.0, 0.6], [opposite], statistics()) == pytest.approx(-1.0)


def test_the_best_passage_counts_not_the_sum_of_two_halves() -> None:
    words_only, vector_only = EvidenceCandidate(TEXTS[0], [0.6, 0.6]), EvidenceCandidate(TEXTS[1], [1.0, 0.6])
    assert evidence_score("trial period?", [1.0, 0.6], [words_only, vector_only], statistics()) == pytest.approx(1.0)


def test_a_word_the_space_has_never_seen_weighs_most() -> None:
    candidate = EvidenceCandidate(TEXTS[0], None)
    known = evidence_score("trial months", None, [candidate], statistics())
    unknown = evidence_score("trial zebra", None, [candidate], statistics())
    assert known == pytest.approx(1.0)
    assert unknown < 0.5


def test_without_vectors_the_words_decide() -> None:
    evidence = judge_evidence("年假有几天？", None, [EvidenceCandidate(TEXTS[3], None)], statistics(), threshold=0.45)
    assert evidence.enough
    weak = judge_evidence("红楼梦的作者是谁？", None, [EvidenceCandidate(TEXTS[3], None)], statistics(), threshold=0.45)
    assert (weak.enough, weak.reason) == (False, "weak")


def test_a_space_of_one_chunk_leans_on_the_background() -> None:
    single = SpaceStatistics(chunks=1, mean_vector=[1.0, 0.0], term_counts={})
    candidate = EvidenceCandidate("anything", [1.0, 0.0])
    assert evidence_score("what?", [1.0, 0.0], [candidate], single) == 0.0
    assert evidence_score("what?", [1.0, 0.0], [candidate], single, background_mean=[0.0, 1.0]) == pytest.approx(1.5)
    mean = smoothed_mean(single, [0.0, 1.0])
    assert mean is not None
    assert mean.tolist() == pytest.approx([1 / 41, 40 / 41])


def test_several_spaces_are_one_to_a_question() -> None:
    empty = SpaceStatistics(chunks=0, mean_vector=[], term_counts={})
    other = SpaceStatistics(chunks=12, mean_vector=[0.0, 1.0], term_counts={"trial": 3})
    both = combined_statistics([statistics(), other, empty])
    assert (both.chunks, both.term_counts["trial"]) == (16, 4)
    assert both.mean_vector == pytest.approx([0.2, 0.9])
    assert smoothed_mean(combined_statistics([empty]), None) is None
