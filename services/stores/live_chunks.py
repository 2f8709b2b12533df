"""The verifying query of invariant 1: which found chunks are live, current and readable at this moment, with their texts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    FromClause,
    Integer,
    Select,
    Text,
    and_,
    bindparam,
    column,
    exists,
    func,
    literal,
    or_,
    select,
)
from sqlalchemy.types import TypeEngine

from schemas.access import Actor
from schemas.index_records import IndexFilter
from schemas.passages import PassageChunk
from services.stores.database import Transaction
from services.stores.prepared import Prepared
from services.stores.readable import ACTORS_KEPT, readable
from services.stores.tables.documents import chunks, document_versions, documents, version_chunks

_COLUMNS = (
    version_chunks.c.chunk_id,
    version_chunks.c.document_id,
    version_chunks.c.version.label("document_version"),
    version_chunks.c.ordinal,
    version_chunks.c.start,
    version_chunks.c.end,
    version_chunks.c.page_start,
    version_chunks.c.page_end,
    version_chunks.c.heading_path,
    version_chunks.c.parent_start,
    version_chunks.c.parent_end,
    version_chunks.c.context,
    version_chunks.c.kind,
    documents.c.title,
    documents.c.external_id,
    documents.c.updated_at,
    documents.c.space_id,
    chunks.c.text,
    chunks.c.tokens,
)
_FIELDS = [each.name for each in _COLUMNS if each.name in PassageChunk.model_fields]
MOST_AROUND = 1_000
_ON_LIVE = and_(documents.c.id == version_chunks.c.document_id, documents.c.live_version == version_chunks.c.version)


def _live(beside: FromClause | None = None, near: ColumnElement[bool] | None = None) -> Select[Any]:
    """Chunks of live versions; with `beside`, those that lie `near` one of its rows."""
    chosen = version_chunks if beside is None else beside.join(version_chunks, near)
    return (
        select(*_COLUMNS)
        .select_from(chosen)
        .join(documents, _ON_LIVE)
        .join(chunks, chunks.c.id == version_chunks.c.chunk_id)
    )


class LiveChunks(Mapping[str, PassageChunk]):
    """Verified chunks by id. Each is built when it is looked at: of a hundred that are verified a search shows ten."""

    def __init__(self, rows: Sequence[Mapping[Any, Any]]) -> None:
        self._rows = {row["chunk_id"]: row for row in rows}

    def __getitem__(self, chunk_id: str) -> PassageChunk:
        return _passage_chunk(self._rows[chunk_id])

    def __contains__(self, chunk_id: object) -> bool:
        return chunk_id in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


async def verify(transaction: Transaction, actor: Actor, chunk_ids: Sequence[str], flt: IndexFilter) -> LiveChunks:
    """The chunks among `chunk_ids` that this actor may be shown now, by id. What the index said of them is not believed."""
    if not chunk_ids or flt.matches_nothing:
        return LiveChunks([])
    filters = {name: value for name, value in _values_of(flt).items() if value is not None and value != []}
    statement = _verifying(actor, frozenset(filters))
    return LiveChunks(await transaction.all(statement, {"chunk_ids": list(chunk_ids), **filters}))


def _values_of(flt: IndexFilter) -> dict[str, Any]:
    return {
        "spaces": list(flt.spaces),
        "documents": list(flt.documents),
        "tags": list(flt.tags),
        "sources": list(flt.sources),
        "media_types": list(flt.media_types),
        "updated_after": flt.updated_after,
        "updated_before": flt.updated_before,
    }


def _of(name: str) -> ColumnElement[Any]:
    """Any element of the list that is sent as `name`."""
    return func.any(bindparam(name, type_=ARRAY(Text)))


def _conditions() -> dict[str, ColumnElement[bool]]:
    """The caller's own filters once more, so that a stale payload in an index cannot widen them."""
    live = and_(
        document_versions.c.document_id == documents.c.id, document_versions.c.number == documents.c.live_version
    )
    updated = func.extract("epoch", document_versions.c.created_at)
    return {
        "spaces": documents.c.space_id == _of("spaces"),
        "documents": documents.c.id == _of("documents"),
        "tags": documents.c.tags.op("&&")(bindparam("tags", type_=ARRAY(Text))),
        "sources": documents.c.source == _of("sources"),
        "media_types": exists().where(live, document_versions.c.media_type == _of("media_types")),
        "updated_after": exists().where(live, updated >= bindparam("updated_after", type_=BigInteger)),
        "updated_before": exists().where(live, updated < bindparam("updated_before", type_=BigInteger)),
    }


@lru_cache(ACTORS_KEPT)
def _verifying(actor: Actor, filters: frozenset[str]) -> Prepared:
    """Built once per actor and kind of filter: it is asked with every search, and building it costs more than sending it."""
    asked = [condition for name, condition in _conditions().items() if name in filters]
    return Prepared(_live().where(version_chunks.c.chunk_id == _of("chunk_ids"), readable(actor), *asked))


async def any_superseded(transaction: Transaction, actor: Actor, chunk_ids: Sequence[str]) -> bool:
    """Whether one of these chunks belongs to a readable document whose live version no longer has it."""
    return await transaction.scalar(_superseded(actor), {"chunk_ids": list(chunk_ids)}) is not None


@lru_cache(ACTORS_KEPT)
def _superseded(actor: Actor) -> Prepared:
    older = and_(version_chunks.c.chunk_id == _of("chunk_ids"), version_chunks.c.version < documents.c.live_version)
    return Prepared(
        select(literal(True))
        .select_from(version_chunks)
        .join(documents, documents.c.id == version_chunks.c.document_id)
        .where(older, readable(actor))
        .limit(1)
    )


async def around(
    transaction: Transaction, actor: Actor, hits: Sequence[PassageChunk], reach: int
) -> list[PassageChunk]:
    """Live chunks up to `reach` ordinals from each hit, or in its parent section: what passages grow into."""
    if not hits:
        return []
    asked = {
        "documents": [hit.document_id for hit in hits],
        "versions": [hit.document_version for hit in hits],
        "firsts": [hit.ordinal - reach for hit in hits],
        "lasts": [hit.ordinal + reach for hit in hits],
        "starts": [hit.parent_start for hit in hits],
        "ends": [hit.parent_end for hit in hits],
    }
    rows = await transaction.all(_around(actor), asked)
    once = {(row["document_id"], row["ordinal"]): row for row in rows}  # it may be near several hits
    return [_passage_chunk(row) for row in once.values()]


@lru_cache(ACTORS_KEPT)
def _around(actor: Actor) -> Prepared:
    """A hit without a parent section has null for its bounds, which nothing lies between."""
    kinds: dict[str, type[TypeEngine[Any]]] = {
        "document": Text, "version": Integer, "first": Integer, "last": Integer, "start": Integer, "end": Integer,
    }  # fmt: skip
    lists = [bindparam(f"{name}s", type_=ARRAY(kind)) for name, kind in kinds.items()]
    columns = [column(name, kind) for name, kind in kinds.items()]
    hits = func.unnest(*lists).table_valued(*columns).render_derived("hit")
    near = and_(
        version_chunks.c.document_id == hits.c.document,
        version_chunks.c.version == hits.c.version,
        or_(
            version_chunks.c.ordinal.between(hits.c.first, hits.c.last),
            and_(version_chunks.c.start >= hits.c.start, version_chunks.c.end <= hits.c.end),
        ),
    )
    return Prepared(_live(hits, near).where(readable(actor)).limit(MOST_AROUND))


async def of_document(
    transaction: Transaction, actor: Actor, document_id: str, start: int, end: int, most: int
) -> list[PassageChunk]:
    """Chunks of the live version that lie in text[start:end] at least in part, in the text's order; summaries left out."""
    asked = {"document": document_id, "from_char": start, "to_char": end, "most": most}
    return [_passage_chunk(row) for row in await transaction.all(_of_document(actor), asked)]


@lru_cache(ACTORS_KEPT)
def _of_document(actor: Actor) -> Prepared:
    touched = and_(
        version_chunks.c.document_id == bindparam("document"),
        version_chunks.c.start < bindparam("to_char", type_=Integer),
        version_chunks.c.end > bindparam("from_char", type_=Integer),
    )
    ordered = _live().where(touched, readable(actor)).order_by(version_chunks.c.start, version_chunks.c.ordinal)
    return Prepared(ordered.limit(bindparam("most", type_=Integer)))


async def live_versions(transaction: Transaction, actor: Actor, document_ids: Collection[str]) -> dict[str, int]:
    """The live version of each of these documents that the actor may be shown now."""
    rows = await transaction.all(_live_versions(actor), {"documents": list(document_ids)})
    return {row["id"]: row["live_version"] for row in rows}


@lru_cache(ACTORS_KEPT)
def _live_versions(actor: Actor) -> Prepared:
    wanted = and_(documents.c.id == _of("documents"), documents.c.live_version.is_not(None), readable(actor))
    return Prepared(select(documents.c.id, documents.c.live_version).where(wanted))


def _passage_chunk(row: Mapping[Any, Any]) -> PassageChunk:
    """Built without validation: the rows are ours and there may be hundreds in a search."""
    values = {name: row[name] for name in _FIELDS}
    values["title"] = row["title"] or (row["external_id"] or "").rsplit("/", 1)[-1] or None
    return PassageChunk.model_construct(**values)
