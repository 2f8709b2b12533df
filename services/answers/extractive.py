"""The built-in answer without a model: the passages' best sentences, word for word, each with its citation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from schemas.answers import Citation
from schemas.passages import ExtractiveSentence, Passage, SpaceStatistics
from services.answers.question_language import Language, question_language
from services.answers.quotable_units import Unit, quotable_units
from services.retrieval.analyser import content_terms, terms
from services.retrieval.citation_marks import without_foreign_marks
from services.retrieval.evidence import inverse_document_frequency
from services.retrieval.passage_ranges import cite

QUOTING_NOTICE: dict[Language, str] = {
    "en": "These sentences are quoted from the documents:",
    "zh": "以下内容逐字摘自文档：",
}
MAX_SENTENCES = 4
# A further sentence must be worth this share of the best one.
_WORTH_QUOTING = 0.55
_HEADING_SHARE = 0.5
_RANK_SHARE = 0.15
_VECTOR_SHARE = 0.6
_LONG_UNIT_TERMS = 60

# Similarity of a sentence to the question, in [-1, 1], by (passage number, start, end).
SentenceScores = Mapping[tuple[int, int, int], float]


@dataclass(frozen=True)
class _Candidate:
    passage: Passage
    unit: Unit
    held: frozenset[str]
    score: float

    @property
    def text(self) -> str:
        return self.passage.text[self.unit.start : self.unit.end]


def compose(
    question: str,
    passages: Sequence[Passage],
    *,
    statistics: SpaceStatistics | None = None,
    sentence_scores: SentenceScores | None = None,
    limit: int = MAX_SENTENCES,
) -> list[ExtractiveSentence]:
    """The best sentences, best first; none of them repeats another.

    Scored by the idf-weighted share of the question's content terms they hold (those of their headings count half),
    the rank of their passage, and, when given, the similarity of their vectors. Rarity comes from the space's statistics
    or else from the passages themselves. With no overlap at all (another language) the first passage's first sentence
    is quoted: whether that is evidence has been decided before.
    """
    candidates = [
        (passage, unit) for passage in passages if passage.n and passage.parts for unit in quotable_units(passage)
    ]
    if not candidates:
        return []
    statistics = statistics or _statistics_of(passages)
    weights = {term: inverse_document_frequency(term, statistics) for term in content_terms(question)}
    scored = [
        _scored(
            passage,
            unit,
            weights,
            rank=_rank(passage, passages),
            similarity=_similarity(passage, unit, sentence_scores),
        )
        for passage, unit in candidates
    ]
    return [_sentence(candidate) for candidate in _chosen(scored, weights, limit)]


def render(question: str, sentences: Sequence[ExtractiveSentence]) -> str:
    """The answer's text: the notice that it quotes, in the question's language, then one quote a paragraph.

    Word for word, but for a quote's own references: `[12]` is shown as `(12)`, so every `[n]` is a citation.
    """
    quotes = [without_foreign_marks("\n".join(filter(None, [s.header, s.text]))) + f" [{s.n}]" for s in sentences]
    return "\n\n".join([QUOTING_NOTICE[question_language(question)], *quotes])


def quoted_citations(sentences: Sequence[ExtractiveSentence], passages: Sequence[Passage]) -> list[Citation]:
    """One citation per passage quoted, in order of first use, quoting its best sentence."""
    by_number = {passage.n: passage for passage in passages if passage.n}
    first: dict[int, ExtractiveSentence] = {}
    for sentence in sentences:
        first.setdefault(sentence.n, sentence)
    return [cite(by_number[n], sentence.start, sentence.end) for n, sentence in first.items()]


def _scored(
    passage: Passage, unit: Unit, weights: Mapping[str, float], *, rank: float, similarity: float
) -> _Candidate:
    text = passage.text[unit.start : unit.end]
    held = frozenset(terms(f"{unit.header}\n{text}" if unit.header else text))
    under = frozenset(terms(f"{passage.title or ''} {unit.headings}"))
    total = sum(weights.values()) or 1.0
    own = sum(weight for term, weight in weights.items() if term in held)
    inherited = sum(weight for term, weight in weights.items() if term in under and term not in held)
    overlap = (own + _HEADING_SHARE * inherited) / total
    brevity = 1.0 if len(held) <= _LONG_UNIT_TERMS else math.sqrt(_LONG_UNIT_TERMS / len(held))
    score = overlap * brevity + (_RANK_SHARE * rank if overlap else 0.0) + _VECTOR_SHARE * similarity
    return _Candidate(passage, unit, held, score)


def _chosen(scored: Sequence[_Candidate], weights: Mapping[str, float], limit: int) -> list[_Candidate]:
    """Best first; one that adds no new words to those chosen, or is far worse than the best, is left out."""
    ordered = sorted(scored, key=lambda candidate: -candidate.score)  # stable: text order among equals
    if ordered[0].score <= 0:
        return ordered[:1]
    chosen: list[_Candidate] = []
    for candidate in ordered:
        if len(chosen) == limit or candidate.score < _WORTH_QUOTING * ordered[0].score:
            break
        if not any(_repeats(candidate, other, weights) for other in chosen):
            chosen.append(candidate)
    return chosen


def _repeats(candidate: _Candidate, other: _Candidate, weights: Mapping[str, float]) -> bool:
    both = len(candidate.held & other.held)
    return both >= 0.8 * min(len(candidate.held), len(other.held)) and (candidate.held & weights.keys()) <= other.held


def _sentence(candidate: _Candidate) -> ExtractiveSentence:
    return ExtractiveSentence(
        n=candidate.passage.n, text=candidate.text, start=candidate.unit.start, end=candidate.unit.end,
        score=candidate.score, header=candidate.unit.header,
    )  # fmt: skip


def _rank(passage: Passage, passages: Sequence[Passage]) -> float:
    """1 for the first passage, towards 0 for the last."""
    return 1 - (passage.n - 1) / max(len(passages), passage.n)


def _similarity(passage: Passage, unit: Unit, scores: SentenceScores | None) -> float:
    return scores.get((passage.n, unit.start, unit.end), 0.0) if scores else 0.0


def _statistics_of(passages: Sequence[Passage]) -> SpaceStatistics:
    counts: dict[str, int] = {}
    for passage in passages:
        for term in set(terms(passage.text)):
            counts[term] = counts.get(term, 0) + 1
    return SpaceStatistics(chunks=len(passages), mean_vector=[], term_counts=counts)
