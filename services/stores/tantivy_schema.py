"""How a chunk lies in Tantivy, and how conditions become its queries.

Chunk ids are UUIDs and lie in two integer columns beside their term: reading the ids of hits from columns takes a
tenth of the time that reading stored documents takes.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

import tantivy
from tantivy import Occur, Query

from schemas.index_records import IndexedChunk, IndexedDocument, KeywordQuery
from services.stores.index_conditions import KEYWORD_FIELDS, AnyOf, Condition, payload
from services.stores.keyword_index import EXACT_BOOST, MAX_EXACT_TOKENS, MAX_QUERY_TOKENS, index_tokens, query_tokens

VERSION = "v1"  # names the folder: a change of anything here starts an empty index, which is refilled from Postgres
SEPARATOR = "\x1f"
TOKEN_FIELDS = {"title": "title_tokens", "body": "body_tokens"}


def _build() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    for field in ("id", *KEYWORD_FIELDS, "exact"):
        builder.add_text_field(field, stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("of", stored=False, tokenizer_name="raw", index_option="basic")
    for field in TOKEN_FIELDS:
        builder.add_text_field(field, stored=True, tokenizer_name="whitespace", index_option="freq")
    for field in ("updated_at", "access_version"):
        builder.add_integer_field(field, stored=True, indexed=True, fast=True)
    for field in ("id_high", "id_low"):
        builder.add_unsigned_field(field, stored=False, indexed=False, fast=True)
    return builder.build()


SCHEMA = _build()


def to_document(chunk: IndexedChunk) -> tantivy.Document:
    document = tantivy.Document()
    number = uuid.UUID(chunk.id).int
    document.add_text("id", chunk.id)
    document.add_unsigned("id_high", number >> 64)
    document.add_unsigned("id_low", number & (2**64 - 1))
    document.add_text("of", key_of(chunk.tenant, chunk.document))
    for field, value in payload(chunk).items():
        if isinstance(value, int):
            document.add_integer(field, value)
        else:
            for word in value if isinstance(value, list) else [value]:
                document.add_text(field, str(word))
    document.add_text("title", index_tokens(chunk.title_tokens))
    document.add_text("body", index_tokens(chunk.body_tokens))
    for token in index_tokens(chunk.exact_tokens).split():
        document.add_text("exact", token)
    return document


def to_chunk(document: tantivy.Document) -> IndexedChunk:
    """What was stored, as it was given to `to_document` (without the vector)."""

    def words(field: str) -> list[str]:
        return [str(value) for value in document.get_all(field)]

    def word(field: str) -> str:
        return str(document.get_first(field))

    return IndexedChunk(
        id=word("id"),
        tenant=word("tenant"),
        space=word("space"),
        document=word("document"),
        access_version=int(document.get_first("access_version") or 0),
        readers=words("readers"),
        media_type=word("media_type"),
        source=word("source"),
        tags=words("tags"),
        updated_at=int(document.get_first("updated_at") or 0),
        title_tokens=word("title"),
        body_tokens=word("body"),
        exact_tokens=" ".join(words("exact")),
    )


def ids_of(searcher: tantivy.Searcher, addresses: list[tantivy.DocAddress]) -> list[str]:
    high = searcher.fast_field_values("id_high", addresses)
    low = searcher.fast_field_values("id_low", addresses)
    return [str(uuid.UUID(int=(int(a or 0) << 64) | int(b or 0))) for a, b in zip(high, low, strict=True)]


def key_of(tenant: str, document: str) -> str:
    return f"{tenant}{SEPARATOR}{document}"


def document_of(key: str) -> IndexedDocument:
    tenant, document = key.split(SEPARATOR, 1)
    return IndexedDocument(tenant, document)


def term(field: str, value: str) -> Query:
    return Query.term_query(SCHEMA, field, value, "basic")


def in_body(token: str) -> Query:
    return Query.term_query(SCHEMA, "body", token, "freq")


def all_of(queries: Iterable[Query]) -> Query:
    return Query.boolean_query([(Occur.Must, query) for query in queries])


def any_of(queries: Iterable[Query]) -> Query:
    return Query.boolean_query([(Occur.Should, query) for query in queries])


def matching(wanted: Sequence[Condition]) -> Query:
    return all_of(_condition(condition) for condition in wanted)


def _condition(condition: Condition) -> Query:
    if not isinstance(condition, AnyOf):
        return Query.range_query(
            SCHEMA,
            condition.field,
            tantivy.FieldType.Integer,
            lower_bound=condition.start,
            upper_bound=condition.before,
            include_upper=condition.before is None,  # an open side counts as included
        )
    if len(condition.values) == 1:
        return term(condition.field, condition.values[0])
    return any_of(term(condition.field, value) for value in condition.values)


def words_query(query: KeywordQuery) -> Query | None:
    """BM25 over body and title, and EXACT_BOOST per identifier; null when there is nothing to look for."""
    wanted: list[Query] = []
    for token in query_tokens(query.tokens, MAX_QUERY_TOKENS):
        wanted.append(in_body(token))
        if query.title_weight > 0:
            title = Query.term_query(SCHEMA, "title", token, "freq")
            wanted.append(Query.boost_query(title, query.title_weight))
    exact = query_tokens(query.exact, MAX_EXACT_TOKENS)
    wanted.extend(Query.const_score_query(term("exact", token), EXACT_BOOST) for token in exact)
    return any_of(wanted) if wanted else None


def filtered(words: Query, wanted: Sequence[Condition]) -> Query:
    """The filter decides and does not score."""
    return all_of([Query.const_score_query(matching(wanted), 0.0), words])


def count(searcher: tantivy.Searcher, query: Query) -> int:
    return int(searcher.search(query, limit=1).count)  # type: ignore[attr-defined]  # there, and not in the stubs
