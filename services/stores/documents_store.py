"""Documents and versions as ingestion writes them; every change is an event."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import ARRAY, Text, and_, bindparam, func, select, text, update

from schemas.access import Actor
from schemas.documents import ENDED_STATES
from schemas.domain_events import EventDraft
from schemas.errors import PerdureError
from schemas.identifiers import document_stream
from services.stores import event_log
from services.stores.database import Database, Row, Transaction
from services.stores.prepared import Prepared
from services.stores.readable import readable
from services.stores.tables.documents import document_versions, documents
from services.stores.tables.identity import spaces

ACCESS_CHANNEL = "perdure_access"
_HOLD = Prepared(
    text(
        "SELECT pg_advisory_xact_lock_shared(hashtextextended(name, 0))"
        " FROM unnest(:names) WITH ORDINALITY AS held(name, place) ORDER BY place"
    ).bindparams(bindparam("names", type_=ARRAY(Text)))
)
_OF_DOCUMENT = documents.c.id == bindparam("document")
_GET = Prepared(select(documents).where(_OF_DOCUMENT))
_GET_FOR_UPDATE = Prepared(select(documents).where(_OF_DOCUMENT).with_for_update())
_VERSION = Prepared(
    select(document_versions).where(
        document_versions.c.document_id == bindparam("document"), document_versions.c.number == bindparam("version")
    )
)
_SET_PROGRESS = Prepared(update(documents).where(_OF_DOCUMENT).values(progress=bindparam("how_far")))


class DocumentGone(PerdureError):
    """The document has a tombstone: whatever was under way for it has no more to do."""


def lock_name(document_id: str) -> str:
    return f"document:{document_id}"


@asynccontextmanager
async def writing(database: Database, tenant: str, document_id: str) -> AsyncIterator[Transaction]:
    """A transaction that may write to any store for this document: shared lock held, tombstone looked at (invariant 1)."""
    async with database.begin(tenant) as transaction:
        await transaction.lock(lock_name(document_id), shared=True)
        await require_alive(transaction, document_id)
        yield transaction


async def hold_sources(transaction: Transaction, document_ids: Iterable[str]) -> None:
    """Keeps removals of these documents waiting until the commit, so that they find what is written about them."""
    names = [lock_name(document_id) for document_id in sorted(set(document_ids))]
    if names:
        await transaction.run(_HOLD, {"names": names})


async def require_alive(transaction: Transaction, document_id: str) -> Row:
    row = await get(transaction, document_id)
    if row is None or row["tombstoned_at"] is not None:
        raise DocumentGone(document_id)
    return row


async def get(transaction: Transaction, document_id: str, *, for_update: bool = False) -> Row | None:
    if not for_update:
        return await transaction.one_or_none(_GET, {"document": document_id})
    await event_log.lock_stream(transaction, document_stream(document_id))
    return await transaction.one_or_none(_GET_FOR_UPDATE, {"document": document_id})


async def keep_alive(transaction: Transaction, document_id: str) -> None:
    """DocumentGone when it has a tombstone; else none can be set before the commit (and who sets one sees what was written)."""
    statement = select(documents.c.tombstoned_at).where(documents.c.id == document_id)
    row = await transaction.one_or_none(statement.with_for_update(read=True))
    if row is None or row["tombstoned_at"] is not None:
        raise DocumentGone(document_id)


async def version(transaction: Transaction, document_id: str, number: int) -> Row | None:
    return await transaction.one_or_none(_VERSION, {"document": document_id, "version": number})


async def by_identity(transaction: Transaction, space_id: str, source: str, external_id: str) -> Row | None:
    """The living document of this name, locked."""
    named = and_(
        documents.c.space_id == space_id,
        documents.c.source == source,
        documents.c.external_id == external_id,
        documents.c.tombstoned_at.is_(None),
    )
    found = await transaction.scalar(select(documents.c.id).where(named))
    row = await get(transaction, str(found), for_update=True) if found is not None else None
    return row if row is not None and row["tombstoned_at"] is None else None  # it may have gone while we waited


async def get_readable(transaction: Transaction, actor: Actor, document_id: str) -> Row | None:
    statement = select(documents).where(documents.c.id == document_id, readable(actor))
    return await transaction.one_or_none(statement)


async def is_readable(transaction: Transaction, actor: Actor, document_id: str) -> bool:
    return await get_readable(transaction, actor, document_id) is not None


async def readable_twin(transaction: Transaction, actor: Actor, sha256: str | None, but_not: str) -> str | None:
    """The oldest other document with these bytes in its newest version that the actor may read."""
    if sha256 is None:
        return None
    newest = and_(
        document_versions.c.document_id == documents.c.id, document_versions.c.number == documents.c.newest_version
    )
    statement = (
        select(documents.c.id)
        .join(document_versions, newest)
        .where(document_versions.c.sha256 == sha256, documents.c.id != but_not, readable(actor))
        .order_by(documents.c.created_at)
        .limit(1)
    )
    twin = await transaction.scalar(statement)
    return str(twin) if twin is not None else None


async def versions_to_come(transaction: Transaction, document_id: str) -> list[int]:
    """Versions that may still be published, so a sweep keeps their chunks: not ended, and newer than the live one.

    An older one that has not ended is not to come: it was replaced between its publication and its end, or will be refused.
    """
    live = func.coalesce(documents.c.live_version, 0)
    statement = (
        select(document_versions.c.number)
        .join(documents, documents.c.id == document_versions.c.document_id)
        .where(
            document_versions.c.document_id == document_id,
            document_versions.c.state.not_in(sorted(ENDED_STATES)),
            document_versions.c.number > live,
        )
    )
    return [row["number"] for row in await transaction.all(statement)]


async def children(transaction: Transaction, document_id: str) -> Sequence[Row]:
    living = and_(documents.c.parent_id == document_id, documents.c.tombstoned_at.is_(None))
    return await transaction.all(select(documents).where(living).order_by(documents.c.id))


async def living_of_space(transaction: Transaction, space_id: str, limit: int) -> list[str]:
    """Documents of a space that still have a row worth removing, tombstoned ones included, parents first."""
    left = and_(documents.c.space_id == space_id, documents.c.removed_at.is_(None))
    return [
        row["id"]
        for row in await transaction.all(select(documents.c.id).where(left).order_by(documents.c.id).limit(limit))
    ]


async def space_is_living(transaction: Transaction, space_id: str) -> bool:
    statement = select(spaces.c.id).where(spaces.c.id == space_id, spaces.c.tombstoned_at.is_(None))
    return await transaction.scalar(statement.with_for_update(read=True)) is not None


async def append(
    transaction: Transaction,
    document_id: str,
    type: str,
    data: dict[str, Any],
    *,
    actor: str | None = None,
    run_id: str | None = None,
    traceparent: str | None = None,
) -> None:
    draft = EventDraft(stream=document_stream(document_id), type=type, data=data, cause=run_id)
    await event_log.append(transaction, draft, actor=actor, correlation=run_id, traceparent=traceparent)


async def set_progress(transaction: Transaction, document_id: str, done: int, total: int, unit: str) -> None:
    """How far the stage is: the one column that is no event and that a rebuild need not give again."""
    progress = {"done": done, "total": total, "unit": unit}
    await transaction.run(_SET_PROGRESS, {"document": document_id, "how_far": progress})


async def blob_keys(transaction: Transaction, document_id: str) -> set[str]:
    """Keys that the document's versions name; an upload's own key lies outside the document's folder."""
    statement = select(document_versions.c.blob_key, document_versions.c.text_key)
    rows = await transaction.all(statement.where(document_versions.c.document_id == document_id))
    return {key for row in rows for key in (row["blob_key"], row["text_key"]) if key is not None}


async def living_page(transaction: Transaction, after: str, limit: int) -> Sequence[Row]:
    """(tenant, id) of documents without a tombstone, by id: the walk of an index repair."""
    living = and_(documents.c.id > after, documents.c.tombstoned_at.is_(None))
    statement = select(documents.c.tenant, documents.c.id).where(living).order_by(documents.c.id).limit(limit)
    return await transaction.all(statement)
