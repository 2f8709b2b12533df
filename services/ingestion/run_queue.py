"""Runs of work on documents, queued in the caller's transaction: the one place that names their workflows' ids."""

from __future__ import annotations

from collections.abc import Callable

from schemas.access import Actor
from schemas.identifiers import new_id
from schemas.workflow_contracts import (
    INGEST_DOCUMENT,
    REFRESH_ACCESS,
    REMOVE_DOCUMENT,
    REMOVE_SPACE,
)
from services.stores import runs_store
from services.stores.database import Row, Transaction

CurrentTrace = Callable[[], str | None]


class RunQueue:
    """Each method gives the id of a new run, which begins after the commit. `trace` gives the traceparent of this moment."""

    def __init__(self, trace: CurrentTrace) -> None:
        self._trace = trace

    async def ingest(
        self,
        transaction: Transaction,
        actor: Actor,
        document_id: str,
        version: int,
        space_id: str,
        *,
        from_stage: str | None,
    ) -> str:
        """`from_stage`: those before it have been done."""
        run_id = new_id()
        await runs_store.create(
            transaction,
            INGEST_DOCUMENT,
            run_id=run_id,
            workflow_id=f"ingest:{actor.tenant}:{document_id}:{version}",
            actor=actor,
            input_ref={"document_id": document_id, "version": version, "from_stage": from_stage},
            subject=document_id,
            space_id=space_id,
            traceparent=self._trace(),
        )
        return run_id

    async def removal(self, transaction: Transaction, actor: Actor, document: Row) -> str:
        run_id = new_id()
        await runs_store.create(
            transaction,
            REMOVE_DOCUMENT,
            run_id=run_id,
            workflow_id=f"remove:{actor.tenant}:{document['id']}",
            actor=actor,
            input_ref={"document_id": document["id"]},
            subject=document["id"],
            space_id=document["space_id"],
            traceparent=self._trace(),
        )
        return run_id

    async def refresh(self, transaction: Transaction, actor: Actor, document: Row) -> str:
        """Both indexes are given the readers, tags and title of the moment it runs."""
        run_id = new_id()
        await runs_store.create(
            transaction,
            REFRESH_ACCESS,
            run_id=run_id,
            workflow_id=f"access:{actor.tenant}:{document['id']}",
            actor=actor,
            input_ref={"document_id": document["id"]},
            subject=document["id"],
            space_id=document["space_id"],
            traceparent=self._trace(),
        )
        return run_id

    async def space_removal(self, transaction: Transaction, actor: Actor, space_id: str) -> str:
        run_id = new_id()
        await runs_store.create(
            transaction,
            REMOVE_SPACE,
            run_id=run_id,
            workflow_id=f"remove-space:{actor.tenant}:{space_id}",
            actor=actor,
            input_ref={"space_id": space_id},
            subject=space_id,
            space_id=space_id,
            traceparent=self._trace(),
        )
        return run_id
