"""What time has made useless, over all tenants: rows to prune and blobs that no row names."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import or_, select, tuple_

from services.stores.database import Transaction
from services.stores.tables.agents import artifacts
from services.stores.tables.documents import document_versions
from services.stores.tables.runs import run_events, runs

DELTAS = ("token", "thinking")


async def runs_with_deltas(
    transaction: Transaction, *, ended_before: datetime, ended_after: datetime | None, limit: int
) -> list[str]:
    """Runs that ended in that time and still have token rows."""
    of_run = select(run_events.c.seq).where(run_events.c.run_id == runs.c.id, run_events.c.type.in_(DELTAS))
    statement = select(runs.c.id).where(runs.c.ended_at < ended_before, of_run.exists()).limit(limit)
    if ended_after is not None:
        statement = statement.where(runs.c.ended_at >= ended_after)
    return [row["id"] for row in await transaction.all(statement)]


async def named_blobs(transaction: Transaction, keys: Collection[str]) -> set[str]:
    """Those of the keys that a version or an artifact names."""
    named = or_(document_versions.c.blob_key.in_(keys), document_versions.c.text_key.in_(keys))
    rows = await transaction.all(select(document_versions.c.blob_key, document_versions.c.text_key).where(named))
    of_artifacts = await transaction.all(select(artifacts.c.blob_key).where(artifacts.c.blob_key.in_(keys)))
    of_versions = {row[column] for row in rows for column in ("blob_key", "text_key") if row[column] in keys}
    return of_versions | {row["blob_key"] for row in of_artifacts}


async def existing_versions(transaction: Transaction, versions: Sequence[tuple[str, int]]) -> set[tuple[str, int]]:
    """Those of the versions (document id, number) that have a row."""
    pair = tuple_(document_versions.c.document_id, document_versions.c.number)
    rows = await transaction.all(
        select(document_versions.c.document_id, document_versions.c.number).where(pair.in_(versions))
    )
    return {(row["document_id"], row["number"]) for row in rows}
