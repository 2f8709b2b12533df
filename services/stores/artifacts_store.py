"""Artifacts: files that runs left behind, and which sandbox belongs to which session."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert

from services.stores.database import Row, Transaction
from services.stores.tables.agents import artifacts, session_sandboxes
from services.stores.tables.runs import sources


async def sandbox_of(transaction: Transaction, owner: str) -> str | None:
    found = await transaction.scalar(select(session_sandboxes.c.sandbox_id).where(session_sandboxes.c.owner == owner))
    return None if found is None else str(found)


async def keep_sandbox(transaction: Transaction, owner: str, sandbox_id: str) -> None:
    row = {"owner": owner, "sandbox_id": sandbox_id, "created_at": transaction.now}
    statement = insert(session_sandboxes).values(**row)
    await transaction.execute(
        statement.on_conflict_do_update(index_elements=["owner"], set_={"sandbox_id": sandbox_id})
    )


async def add(
    transaction: Transaction,
    artifact_id: str,
    *,
    run_id: str,
    session_id: str | None,
    user: str,
    name: str,
    media_type: str,
    size: int,
    sha256: str,
    blob_key: str,
) -> None:
    """The same bytes under the same name of one run are one artifact."""
    row = {
        "id": artifact_id,
        "run_id": run_id,
        "session_id": session_id,
        "user_id": user,
        "name": name,
        "media_type": media_type,
        "bytes": size,
        "sha256": sha256,
        "blob_key": blob_key,
        "created_at": transaction.now,
    }
    await transaction.execute(insert(artifacts).values(**row).on_conflict_do_nothing())


async def of_run(transaction: Transaction, run_id: str, after: str, limit: int) -> Sequence[Row]:
    wanted = (artifacts.c.run_id == run_id, artifacts.c.id > after)
    return await transaction.all(select(artifacts).where(*wanted).order_by(artifacts.c.id).limit(limit))


async def get(transaction: Transaction, artifact_id: str) -> Row | None:
    return await transaction.one_or_none(select(artifacts).where(artifacts.c.id == artifact_id))


async def digests(transaction: Transaction, owner: str) -> set[tuple[str, str]]:
    """(name, SHA-256) of what the session's runs left before."""
    wanted = (artifacts.c.session_id == owner) | (artifacts.c.run_id == owner)
    rows = await transaction.all(select(artifacts.c.name, artifacts.c.sha256).where(wanted))
    return {(row["name"], row["sha256"]) for row in rows}


async def blob_keys_from(transaction: Transaction, document_id: str) -> set[str]:
    """Of artifacts that were made by turns which had read the document."""
    of_run = sources.c.record == func.concat("run:", artifacts.c.run_id)
    statement = (
        select(artifacts.c.blob_key)
        .join(sources, of_run)
        .where(sources.c.document_id == document_id, artifacts.c.blob_key.is_not(None))
    )
    return {row["blob_key"] for row in await transaction.all(statement)}
