"""Which documents a stored text came from, and how they stand for a reader now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlalchemy import ARRAY, Text, and_, bindparam, false, func, not_, or_, select

from schemas.access import Actor
from services.stores.database import Transaction
from services.stores.prepared import Prepared
from services.stores.readable import ACTORS_KEPT, readable
from services.stores.tables.documents import documents
from services.stores.tables.runs import sources


@dataclass(frozen=True)
class Standing:
    """Of the sources: how many the reader may not read now, and how many have a newer live version."""

    unreadable: int
    outdated: int


async def standing(transaction: Transaction, actor: Actor, records: Sequence[str]) -> Standing:
    """One query over the sources of these records together."""
    row = (await transaction.all(_standing(actor), {"records": list(records)}))[0]
    return Standing(row["unreadable"], row["outdated"])


async def of_record(transaction: Transaction, record: str) -> list[tuple[str, int]]:
    """The document versions that its text came from."""
    rows = await transaction.all(select(sources).where(sources.c.record == record))
    return sorted((row["document_id"], row["version"]) for row in rows)


@lru_cache(ACTORS_KEPT)
def _standing(actor: Actor) -> Prepared:
    unreadable = or_(documents.c.id.is_(None), not_(func.coalesce(readable(actor), false())))
    outdated = and_(documents.c.id.is_not(None), documents.c.live_version > sources.c.version)
    return Prepared(
        select(func.count().filter(unreadable).label("unreadable"), func.count().filter(outdated).label("outdated"))
        .select_from(sources.outerjoin(documents, documents.c.id == sources.c.document_id))
        .where(sources.c.record == func.any(bindparam("records", type_=ARRAY(Text))))
    )
