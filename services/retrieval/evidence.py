"""Is there evidence at all? One number, so that a question outside the documents never reaches a model.

score = 0.5 x share + cosine, the best over the top passages, where
- share is the part of the question's content terms that the passage holds, each weighted by its rarity in the space
  (BM25's idf; a term the space has never seen weighs most), and
- cosine is taken after the mean vector is subtracted from both the question's and the passage's vector: embedding models
  put all texts into a narrow cone, and it is the deviation from it that means something.

The mean is the space's, mixed with that of background sentences as if they were BACKGROUND_WEIGHT more chunks. Without
it, one chunk's deviation from itself is nothing and small spaces would refuse what they know; with it one threshold
serves a space of one chunk and of thousands. `tests/unit/retrieval/test_evidence_calibration.py` holds the figures.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from schemas.passages import SpaceStatistics
from services.retrieval.analyser import content_terms, terms

SHARE_WEIGHT = 0.5
BACKGROUND_WEIGHT = 40.0
Vector = Sequence[float] | NDArray[np.float32]
Reason = Literal["enough", "weak", "nothing_found"]


@dataclass(frozen=True)
class EvidenceCandidate:
    """A top hit: all its words (title, headings, context, text) and its stored vector, None if that is not at hand."""

    text: str
    vector: Vector | None


@dataclass(frozen=True)
class Evidence:
    """The score, whether it is enough, and why not."""

    score: float
    enough: bool
    reason: Reason


def judge_evidence(
    question: str,
    query_vector: Vector | None,
    candidates: Sequence[EvidenceCandidate],
    statistics: SpaceStatistics,
    *,
    threshold: float,
    background_mean: Vector | None = None,
) -> Evidence:
    """Nothing found is no evidence, whatever the threshold; else the score decides. The model is not asked."""
    if not candidates:
        return Evidence(0.0, enough=False, reason="nothing_found")
    score = evidence_score(question, query_vector, candidates, statistics, background_mean)
    enough = score >= threshold
    return Evidence(score, enough=enough, reason="enough" if enough else "weak")


def evidence_score(
    question: str,
    query_vector: Vector | None,
    candidates: Sequence[EvidenceCandidate],
    statistics: SpaceStatistics,
    background_mean: Vector | None = None,
) -> float:
    """In [-1, 1.5]. Where one half cannot be had, the other counts for both: share alone when a vector is missing,
    1.5 x cosine when the question has no content terms."""
    wanted = content_terms(question)
    weights = {term: inverse_document_frequency(term, statistics) for term in wanted}
    mean = smoothed_mean(statistics, background_mean)
    scores = []
    for candidate in candidates:
        share = weighted_share(weights, set(terms(candidate.text)))
        if query_vector is None or candidate.vector is None or mean is None:
            scores.append(share)
            continue
        cosine = centred_cosine(query_vector, candidate.vector, mean)
        scores.append(SHARE_WEIGHT * share + cosine if wanted else (1 + SHARE_WEIGHT) * cosine)
    return max(scores)


def inverse_document_frequency(term: str, statistics: SpaceStatistics) -> float:
    """Lucene's BM25 form, never negative."""
    holding = min(statistics.term_counts.get(term, 0), statistics.chunks)
    return math.log(1 + (statistics.chunks - holding + 0.5) / (holding + 0.5))


def weighted_share(weights: Mapping[str, float], held: set[str]) -> float:
    total = sum(weights.values())
    return sum(weight for term, weight in weights.items() if term in held) / total if total > 0 else 0.0


def smoothed_mean(statistics: SpaceStatistics, background_mean: Vector | None) -> NDArray[np.float64] | None:
    """The space's mean and the background's, weighted by chunks; None when neither is known."""
    own = np.asarray(statistics.mean_vector, dtype=np.float64)
    if background_mean is None:
        return own if own.size else None
    background = np.asarray(background_mean, dtype=np.float64)
    if not own.size or statistics.chunks == 0:
        return background
    total = statistics.chunks + BACKGROUND_WEIGHT
    return np.asarray((statistics.chunks * own + BACKGROUND_WEIGHT * background) / total)


def centred_cosine(left: Vector, right: Vector, mean: NDArray[np.float64]) -> float:
    """0 when either vector is the mean itself."""
    a, b = np.asarray(left, dtype=np.float64) - mean, np.asarray(right, dtype=np.float64) - mean
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / norms if norms > 1e-9 else 0.0


def combined_statistics(spaces: Sequence[SpaceStatistics]) -> SpaceStatistics:
    """Several spaces asked as one: counts add up, means are weighted by chunks."""
    chunks = sum(space.chunks for space in spaces)
    counts: Counter[str] = Counter()
    for space in spaces:
        counts.update(space.term_counts)
    weighted = [np.asarray(space.mean_vector) * space.chunks for space in spaces if space.mean_vector and space.chunks]
    mean = (np.sum(weighted, axis=0) / chunks).tolist() if weighted else []
    return SpaceStatistics(chunks=chunks, mean_vector=mean, term_counts=counts)
