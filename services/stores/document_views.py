"""Documents as callers read them. Every query carries `readable(actor)`: hidden, removed and unknown are all null."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, literal, select

from schemas.access import Actor
from schemas.documents import ChunkView, DocumentView, HistoryEntry, VersionView
from schemas.identifiers import document_stream
from services.stores import event_log
from services.stores.database import Transaction
from services.stores.readable import readable
from services.stores.tables.documents import chunks, document_versions, documents, version_chunks


@dataclass(frozen=True)
class StoredFile:
    """Where a version's bytes and text lie. A URL that was not fetched yet has no blob."""

    version: int
    title: str | None
    external_id: str
    media_type: str | None
    blob_key: str | None
    text_key: str | None
    sha256: str | None


def _with_newest() -> Select[Any]:
    newest = and_(
        document_versions.c.document_id == documents.c.id, document_versions.c.number == documents.c.newest_version
    )
    of_version = [document_versions.c[name] for name in ("media_type", "bytes", "warnings", "coverage", "error")]
    return select(documents, *of_version).select_from(documents.outerjoin(document_versions, newest))


async def newest_first(
    transaction: Transaction,
    actor: Actor,
    *,
    space_id: str | None,
    state: str | None,
    tag: str | None,
    before: str | None,
    limit: int,
) -> list[DocumentView]:
    """Readable documents by falling id, which is falling age; `before` is the id the page starts after."""
    wanted: list[ColumnElement[bool]] = [readable(actor)]
    if space_id is not None:
        wanted.append(documents.c.space_id == space_id)
    if state is not None:
        wanted.append(documents.c.state == state)
    if tag is not None:
        wanted.append(literal(tag) == func.any(documents.c.tags))
    if before is not None:
        wanted.append(documents.c.id < before)
    statement = _with_newest().where(*wanted).order_by(documents.c.id.desc()).limit(limit)
    return [_view(row) for row in await transaction.all(statement)]


async def get(transaction: Transaction, actor: Actor, document_id: str) -> DocumentView | None:
    row = await transaction.one_or_none(_with_newest().where(documents.c.id == document_id, readable(actor)))
    return None if row is None else _view(row)


async def stored_file(
    transaction: Transaction, actor: Actor, document_id: str, version: int | None
) -> StoredFile | None:
    """The asked version, else the live one, else the newest."""
    number = func.coalesce(documents.c.live_version, documents.c.newest_version) if version is None else version
    statement = (
        select(documents.c.title, documents.c.external_id, document_versions)
        .join(document_versions, document_versions.c.document_id == documents.c.id)
        .where(documents.c.id == document_id, document_versions.c.number == number, readable(actor))
    )
    row = await transaction.one_or_none(statement)
    if row is None:
        return None
    return StoredFile(
        version=row["number"],
        title=row["title"],
        external_id=row["external_id"],
        media_type=row["media_type"],
        blob_key=row["blob_key"],
        text_key=row["text_key"],
        sha256=row["sha256"],
    )


async def versions_before(
    transaction: Transaction, actor: Actor, document_id: str, before: int | None, limit: int
) -> list[VersionView]:
    """Newest first."""
    statement = (
        select(document_versions, document_versions.c.number.label("version"))
        .join(documents, documents.c.id == document_versions.c.document_id)
        .where(documents.c.id == document_id, readable(actor))
        .order_by(document_versions.c.number.desc())
        .limit(limit)
    )
    if before is not None:
        statement = statement.where(document_versions.c.number < before)
    return [
        VersionView.model_validate({name: row[name] for name in VersionView.model_fields})
        for row in await transaction.all(statement)
    ]


async def chunks_after(
    transaction: Transaction, actor: Actor, document_id: str, version: int, after: int | None, limit: int
) -> list[ChunkView]:
    """By ordinal."""
    statement = (
        select(version_chunks, chunks.c.id, chunks.c.text, chunks.c.tokens)
        .join(chunks, chunks.c.id == version_chunks.c.chunk_id)
        .join(documents, documents.c.id == version_chunks.c.document_id)
        .where(documents.c.id == document_id, version_chunks.c.version == version, readable(actor))
        .order_by(version_chunks.c.ordinal)
        .limit(limit)
    )
    if after is not None:
        statement = statement.where(version_chunks.c.ordinal > after)
    return [
        ChunkView.model_validate({name: row[name] for name in ChunkView.model_fields})
        for row in await transaction.all(statement)
    ]


async def history_after(
    transaction: Transaction, actor: Actor, document_id: str, after: int, limit: int
) -> list[HistoryEntry] | None:
    """Its events, oldest first, without gaps; null when the document is not readable."""
    allowed = select(documents.c.id).where(documents.c.id == document_id, readable(actor))
    if await transaction.scalar(allowed) is None:
        return None
    events = await event_log.of_stream(transaction, document_stream(document_id), after=after, limit=limit)
    return [
        HistoryEntry(
            id=str(event.position),
            stream_version=event.stream_version,
            type=event.type,
            actor=f"user:{event.actor}" if event.actor else None,
            at=event.time,
            data=event.data,
        )
        for event in events
    ]


def _view(row: Any) -> DocumentView:
    values = {name: row[name] for name in DocumentView.model_fields if name in row}
    values |= {
        "version": row["newest_version"],
        "searchable": row["live_version"] is not None,
        "progress": row["progress"] or {},
        "warnings": row["warnings"] or [],
        "readers": row["readers"] or [],
        "tags": row["tags"] or [],
        "owner": f"user:{row['owner']}" if row["owner"] else None,
    }
    return DocumentView.model_validate(values)
