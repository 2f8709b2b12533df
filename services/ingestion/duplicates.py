"""Another document with the same bytes, named only to those who may read it."""

from __future__ import annotations

from sqlalchemy import and_, select

from schemas.access import Actor
from services.stores.database import Transaction
from services.stores.readable import readable
from services.stores.tables.documents import document_versions, documents


async def readable_twin(transaction: Transaction, actor: Actor, sha256: str | None, but_not: str) -> str | None:
    """The oldest readable document whose newest version has these bytes."""
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
