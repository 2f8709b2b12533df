"""Does a passage say what a sentence says? The lexical part of the answer, and the best quote for it."""

from __future__ import annotations

from collections.abc import Callable

import regex

from schemas.passages import Passage
from services.retrieval import tokenising
from services.retrieval.analyser import content_terms, terms
from services.retrieval.citation_marks import MARK
from services.retrieval.numbers_in_text import all_numbers_in, figures_in
from services.retrieval.sentences import sentence_spans
from services.retrieval.text_folding import fold

# No word of the sentence could occur in the passage (another script): words alone can neither confirm nor deny it.
NOT_COMPARABLE = 0.5
# A figure that the passage does not state outweighs any number of shared words.
WRONG_FIGURE_AT_MOST = 0.4
_LIST_MARKER = regex.compile(r"^\s*(?:[-*+•·]\s+|\d{1,3}[.)、]\s*|#{1,6}\s+)")
_FIGURES_ONLY = regex.compile(r"[\d.,_-]+")
_IDENTIFIER_WEIGHT = 2.0

SupportCheck = Callable[[str, str], float]


def bare_sentence(sentence: str) -> str:
    """Without citation marks, list marker and emphasis."""
    bare: str = _LIST_MARKER.sub("", MARK.sub("", sentence))
    return bare.replace("*", "").strip()


def readable_text(passage: Passage) -> str:
    """All that a model saw of a passage: the words of its title and headings are its words too."""
    contexts = dict.fromkeys(part.context for part in passage.parts if part.context)
    return "\n".join(filter(None, [passage.title, *passage.heading_path, passage.context, *contexts, passage.text]))


def support_check(sentence: str, passage_text: str) -> float:
    """Share in [0, 1] of the sentence's content terms that the passage holds; identifiers count double.

    At most WRONG_FIGURE_AT_MOST when the sentence states a figure that the passage does not (in digits, words or
    Chinese numerals). A sentence in a script that the passage does not use is judged by the terms both could hold,
    and is NOT_COMPARABLE when there are none. A sentence without content terms claims nothing: 1.
    """
    bare = bare_sentence(sentence)
    wanted = content_terms(bare)
    if not wanted:
        return 1.0
    held = HeldTerms(passage_text)
    comparable = [term for term in wanted if held.comparable(term)]
    if not comparable:
        return NOT_COMPARABLE
    share = _weighted_share(comparable, held)
    if figures_in(fold(bare)) - held.numbers:
        return min(share, WRONG_FIGURE_AT_MOST)
    crosses_scripts = len(comparable) < len(wanted) / 2
    return max(share, NOT_COMPARABLE) if crosses_scripts else share


class HeldTerms:
    """The terms of a text, with its numbers by value: `3` is held by `three` and by `三`."""

    def __init__(self, text: str) -> None:
        self.terms = set(terms(text))
        self.numbers = all_numbers_in(fold(text))
        unspaced = [tokenising.is_unspaced(term) for term in self.terms if not term[0].isdigit()]
        self._scripts = set(unspaced)

    def __contains__(self, term: str) -> bool:
        if term in self.terms:
            return True
        return _FIGURES_ONLY.fullmatch(term) is not None and figures_in(term) <= self.numbers

    def comparable(self, term: str) -> bool:
        """Digits are every script's; otherwise the text must use the kind of script the term is in."""
        return term in self or any(map(str.isdigit, term)) or tokenising.is_unspaced(term) in self._scripts


def _weighted_share(wanted: list[str], held: HeldTerms) -> float:
    weights = {term: _IDENTIFIER_WEIGHT if _names_a_thing(term) else 1.0 for term in wanted}
    return sum(weights[term] for term in wanted if term in held) / sum(weights.values())


def _names_a_thing(term: str) -> bool:
    """Figures alone have a rule of their own."""
    return any(map(str.isdigit, term)) and _FIGURES_ONLY.fullmatch(term) is None


def best_quote(sentence: str, passage: Passage) -> tuple[int, int] | None:
    """[start, end) in passage.text of the sentence that supports `sentence` best; it lies inside one chunk.

    With no word in common the hit's own first sentence. None for a passage that has nothing to cite.
    """
    wanted = content_terms(bare_sentence(sentence))
    candidates = quotable_spans(passage)
    if not candidates:
        return None
    best = max(candidates, key=lambda span: _overlap(wanted, passage.text[span[0] : span[1]]))
    if _overlap(wanted, passage.text[best[0] : best[1]]) > 0:
        return best
    of_hit = [span for span in candidates if any(low <= span[0] < high for low, high in _hit_ranges(passage))]
    return (of_hit or candidates)[0]


def quotable_spans(passage: Passage) -> list[tuple[int, int]]:
    """Sentence spans in passage.text, each inside one part, in order, each once; headings only if nothing else is."""
    spans: dict[tuple[int, int], None] = {}
    for part in passage.parts:
        for start, end in sentence_spans(passage.text[part.passage_start : part.passage_end]):
            spans[part.passage_start + start, part.passage_start + end] = None
    prose = [span for span in spans if not passage.text[span[0] : span[1]].startswith("#")]
    return sorted(prose or spans)


def _hit_ranges(passage: Passage) -> list[tuple[int, int]]:
    hits = set(passage.hit_chunk_ids)
    return [(part.passage_start, part.passage_end) for part in passage.parts if part.chunk_id in hits]


def _overlap(wanted: list[str], candidate: str) -> float:
    """Mostly how much of what is wanted the candidate holds, a little how much of the candidate is wanted."""
    held = HeldTerms(candidate)
    if not wanted or not held.terms:
        return 0.0
    recall = _weighted_share(wanted, held)
    return 0.85 * recall + 0.15 * len(held.terms.intersection(wanted)) / len(held.terms) if recall else 0.0
