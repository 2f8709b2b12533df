"""Which documents a stored text came from, and how they stand for a reader now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlalchemy import ARRAY, ColumnElement, Text, and_, bindparam, false, func, not_, or_, select

from schemas.access import Actor
from services.stores.database import Transaction
from services.stores.prepared import Prepared
from services.stores.readable import ACTORS_KEPT, readable
from services.stores.tables.documents import documents
from services.stores.tables.runs import sources

_OF_RECORDS = sources.c.record == func.any(bindparam("records", type_=ARRAY(Text)))
_WITH_DOCUMENTS = sources.outerjoin(documents, documents.c.id == sources.c.document_id)


@dataclass(frozen=True)
class Standing:
    """Of the sources: how many the reader may not read now, and how many have a newer live version."""

    unreadable: int
    outdated: int


NO_SOURCES = Standing(unreadable=0, outdated=0)


async def standing(transaction: Transaction, actor: Actor, records: Sequence[str]) -> Standing:
    """One query over the sources of these records together."""
    row = (await transaction.all(_standing(actor), {"records": list(records)}))[0]
    return Standing(row["unreadable"], row["outdated"])


async def standings(transaction: Transaction, actor: Actor, records: Sequence[str]) -> dict[str, Standing]:
    """Each record's own, in one query; one without sources is not in it."""
    if not records:
        return {}
    rows = await transaction.all(_standings(actor), {"records": list(records)})
    return {row["record"]: Standing(row["unreadable"], row["outdated"]) for row in rows}


async def of_records(transaction: Transaction, records: Sequence[str]) -> list[tuple[str, int]]:
    """The document versions that the texts of these came from, each once."""
    if not records:
        return []
    rows = await transaction.all(select(sources).where(_OF_RECORDS), {"records": list(records)})
    return sorted({(row["document_id"], row["version"]) for row in rows})


def _counts(actor: Actor) -> tuple[ColumnElement[int], ColumnElement[int]]:
    unreadable = or_(documents.c.id.is_(None), not_(func.coalesce(readable(actor), false())))
    outdated = and_(documents.c.id.is_not(None), documents.c.live_version > sources.c.version)
    return func.count().filter(unreadable).label("unreadable"), func.count().filter(outdated).label("outdated")


@lru_cache(ACTORS_KEPT)
def _standing(actor: Actor) -> Prepared:
    return Prepared(select(*_counts(actor)).select_from(_WITH_DOCUMENTS).where(_OF_RECORDS))


@lru_cache(ACTORS_KEPT)
def _standings(actor: Actor) -> Prepared:
    counted = select(sources.c.record, *_counts(actor)).select_from(_WITH_DOCUMENTS).where(_OF_RECORDS)
    return Prepared(counted.group_by(sources.c.record))
