"""Citation truth: reading a model's text, resolving its marks to chunks and quotes, marking what is not supported."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import regex

from schemas.answers import Citation
from schemas.passages import CheckedText, CitedSentence, CitedText, Passage
from services.retrieval.citation_marks import CitationStream
from services.retrieval.citation_support import SupportCheck, best_quote, readable_text, support_check
from services.retrieval.passage_ranges import cite
from services.retrieval.sentences import sentence_spans

UNSUPPORTED_MARK = " [unsupported]"
UNSUPPORTED_MARK_CHINESE = " [无来源支持]"
_LEADING_MARKS = regex.compile(r"(?:[^\S\n]*\[\d+\])+[.。]?")
_HAN = regex.compile(r"\p{Han}")


def supplied_numbers(passages: Sequence[Passage]) -> set[int]:
    """Passages with `n` = 0 are background: no number of theirs was supplied."""
    return {passage.n for passage in passages if passage.n and passage.parts}


def read_citations(text: str, supplied: Collection[int]) -> CitedText:
    """The text with only supplied numbers left, the numbers in order of first use, and who cites what."""
    stream = CitationStream(supplied)
    clean = stream.feed(text) + stream.close()
    sentences = [_cited(start, end, stream.marks) for start, end in _sentences_with_their_marks(clean)]
    used = list(dict.fromkeys(number for sentence in sentences for number in sentence.numbers))
    return CitedText(text=clean, used=used, sentences=sentences)


def check_citations(
    cited: CitedText,
    passages: Sequence[Passage],
    *,
    support_threshold: float,
    check: SupportCheck = support_check,
) -> CheckedText:
    """One citation per number used, quoting what supports its sentence best; unsupported sentences carry a mark.

    A sentence is supported when the passages it cites, taken together, reach the threshold. The mark stands after the
    sentence's last number, so a reader sees it where the doubt is; sentences that cite nothing claim no source.
    """
    by_number = {passage.n: passage for passage in passages if passage.n}
    text, shift = cited.text, 0
    unsupported: list[tuple[int, int]] = []
    for sentence in cited.sentences:
        if not sentence.numbers:
            continue
        words = cited.text[sentence.start : sentence.end]
        sources = "\n".join(readable_text(by_number[number]) for number in sentence.numbers)
        if check(words, sources) >= support_threshold:
            continue
        mark = UNSUPPORTED_MARK_CHINESE if _HAN.search(words) else UNSUPPORTED_MARK
        place = sentence.marks[-1][1] + shift
        text = text[:place] + mark + text[place:]
        unsupported.append((sentence.start + shift, sentence.end + shift + len(mark)))
        shift += len(mark)
    return CheckedText(text=text, citations=resolve_citations(cited, passages), unsupported=unsupported)


def resolve_citations(cited: CitedText, passages: Sequence[Passage]) -> list[Citation]:
    """In order of first use. The quote is the one best supported among all sentences that cite the number."""
    by_number = {passage.n: passage for passage in passages if passage.n}
    citations = []
    for number in cited.used:
        passage = by_number[number]
        citing = [cited.text[s.start : s.end] for s in cited.sentences if number in s.numbers]
        quotes = [(quote, words) for words in citing if (quote := best_quote(words, passage)) is not None]
        if quotes:
            span, _ = max(quotes, key=lambda pair: support_check(pair[1], passage.text[pair[0][0] : pair[0][1]]))
            citations.append(cite(passage, *span))
    return citations


def _cited(start: int, end: int, marks: Sequence[tuple[int, int, int]]) -> CitedSentence:
    own = [mark for mark in marks if start <= mark[0] and mark[1] <= end]
    numbers = list(dict.fromkeys(number for _, _, number in own))
    return CitedSentence(start=start, end=end, marks=[(a, b) for a, b, _ in own], numbers=numbers)


def _sentences_with_their_marks(text: str) -> list[tuple[int, int]]:
    """Marks that stand after a full stop belong to the sentence they follow."""
    spans: list[tuple[int, int]] = []
    for start, end in sentence_spans(text):
        marks = _LEADING_MARKS.match(text, start, end)
        if marks and spans and "\n" not in text[spans[-1][1] : start]:
            spans[-1] = (spans[-1][0], marks.end())
            start = marks.end()
            while start < end and text[start].isspace():
                start += 1
        if start < end:
            spans.append((start, end))
    return spans
