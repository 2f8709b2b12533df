"""The one keyword analyser. Every engine indexes and asks with its tokens, so every engine finds the same.

Tokens hold no white space: engines may store them space-joined and split on spaces. Any string is valid input.
"""

from __future__ import annotations

from itertools import chain

from schemas.passages import QueryTokens
from services.retrieval import tokenising
from services.retrieval.stop_words import HOW_MUCH, STOP_WORDS, content_spans_of_han
from services.retrieval.text_folding import fold, regional_wordings

MAX_QUERY_TOKENS = 256


def analyse(text: str) -> list[str]:
    """Tokens to index, in text order: exact words and their stems, character pairs, identifiers whole."""
    return list(chain.from_iterable(map(tokenising.tokens_of, tokenising.runs(fold(text)))))


def identifiers(text: str) -> list[str]:
    """The identifiers of a text to index for exact matches, each once: ppr-9087, v2.3.1, c++, 12306."""
    found = (
        name for run in tokenising.runs(fold(text)) if not tokenising.is_unspaced(run) for name in _identifiers(run)
    )
    return list(dict.fromkeys(found))


def analyse_query(text: str) -> QueryTokens:
    """Tokens to ask for, each once. Stop words go only when something else is left."""
    tokens: list[str] = []
    stopped: list[str] = []
    exact: list[str] = []
    for run in tokenising.runs(fold(text)):
        (stopped if run in STOP_WORDS else tokens).extend(tokenising.tokens_of(run))
        if not tokenising.is_unspaced(run):
            exact.extend(_identifiers(run))
    kept = _once(tokens or stopped, MAX_QUERY_TOKENS)
    return QueryTokens(tokens=kept, exact=_once(exact, MAX_QUERY_TOKENS), variants=_variants(text, kept))


def _identifiers(run: str) -> list[str]:
    """Whole forms only: a part of an identifier is none itself."""
    if tokenising.is_number(run):
        return []
    wholes = tokenising.wholes_of(run) or (run[: tokenising.MAX_TOKEN_CHARS],)
    return [whole for whole in wholes if tokenising.is_identifier(whole)]


def _once(tokens: list[str], most: int) -> list[str]:
    return list(dict.fromkeys(tokens))[:most]


def _variants(text: str, tokens: list[str]) -> list[str]:
    if text.isascii():
        return []
    known = set(tokens)
    found = [token for wording in regional_wordings(text) for token in analyse(wording) if token not in known]
    return _once(found, MAX_QUERY_TOKENS)


def terms(text: str) -> list[str]:
    """Stems, wholes, numbers and pairs, without the exact forms: what statistics count. A subset of `analyse`."""
    return list(chain.from_iterable(map(_terms_of_run, tokenising.runs(fold(text)))))


def content_terms(text: str) -> list[str]:
    """The terms a question asks about, each once: no stop words, no question words, no Chinese function words."""
    found: list[str] = []
    for run in tokenising.runs(HOW_MUCH.sub(" ", fold(text))):
        if tokenising.is_unspaced(run):
            for span in content_spans_of_han(run):
                found.extend(tokenising.pairs(span))
        elif run not in STOP_WORDS:
            found.extend(_terms_of_run(run))
    return list(dict.fromkeys(found))


def _terms_of_run(run: str) -> list[str]:
    if tokenising.is_unspaced(run):
        return tokenising.pairs(run)
    if tokenising.is_number(run):
        return list(tokenising.number_tokens(run))
    return [word.stem for word in tokenising.words_of(run)] + list(tokenising.wholes_of(run))
