"""How a chunk lies in Elasticsearch, and how conditions become its query clauses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from schemas.index_records import IndexedChunk, KeywordQuery
from services.stores.index_conditions import KEYWORD_FIELDS, AnyOf, Condition, payload
from services.stores.keyword_index import (
    EXACT_BOOST,
    MAX_EXACT_TOKENS,
    MAX_QUERY_TOKENS,
    MAX_TOKEN_CHARS,
    index_tokens,
    query_tokens,
)

VERSION = "v1"  # part of the index's name: a change here starts an empty index, which is refilled from Postgres
REFRESH_INTERVAL = "200ms"  # how long a write waits at most to be seen; the default of 1 s would hold every document up

_TOKENS = {"type": "text", "analyzer": "tokens", "index_options": "freqs"}

MAPPINGS: dict[str, Any] = {
    "dynamic": "strict",
    "properties": {
        **{field: {"type": "keyword"} for field in ("id", *KEYWORD_FIELDS, "exact")},
        "updated_at": {"type": "long"},
        "access_version": {"type": "long"},
        "title": _TOKENS,
        "body": _TOKENS,
    },
}

SETTINGS: dict[str, Any] = {
    "refresh_interval": REFRESH_INTERVAL,
    "analysis": {
        # the tokeniser counts UTF-16 units, of which a code point may have two
        "tokenizer": {"tokens": {"type": "whitespace", "max_token_length": 2 * MAX_TOKEN_CHARS}},
        "analyzer": {"tokens": {"type": "custom", "tokenizer": "tokens"}},
    },
}

SET_FIELDS = "ctx._source.putAll(params.fields)"


def source(chunk: IndexedChunk) -> dict[str, object]:
    return {
        "id": chunk.id,
        **payload(chunk),
        "title": index_tokens(chunk.title_tokens),
        "body": index_tokens(chunk.body_tokens),
        "exact": index_tokens(chunk.exact_tokens).split(),
    }


def clauses(wanted: Sequence[Condition]) -> list[dict[str, Any]]:
    return [_clause(condition) for condition in wanted]


def _clause(condition: Condition) -> dict[str, Any]:
    if isinstance(condition, AnyOf):
        return {"terms": {condition.field: condition.values}}
    bounds = {"gte": condition.start, "lt": condition.before}
    return {"range": {condition.field: {name: value for name, value in bounds.items() if value is not None}}}


def matching(wanted: Sequence[Condition], *more: dict[str, Any]) -> dict[str, Any]:
    return {"bool": {"filter": [*clauses(wanted), *more]}}


def words_query(query: KeywordQuery, wanted: Sequence[Condition]) -> dict[str, Any] | None:
    """BM25 over body and title, and EXACT_BOOST per identifier; null when there is nothing to look for."""
    should: list[dict[str, Any]] = []
    for token in query_tokens(query.tokens, MAX_QUERY_TOKENS):
        should.append({"term": {"body": {"value": token}}})
        if query.title_weight > 0:
            should.append({"term": {"title": {"value": token, "boost": query.title_weight}}})
    exact = query_tokens(query.exact, MAX_EXACT_TOKENS)
    should.extend({"constant_score": {"filter": {"term": {"exact": token}}, "boost": EXACT_BOOST}} for token in exact)
    if not should:
        return None
    return {"bool": {"filter": clauses(wanted), "should": should, "minimum_should_match": 1}}
