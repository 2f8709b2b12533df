"""Runs of work on documents, queued in the caller's transaction: the one place that names their workflows' ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from schemas.access import Actor
from schemas.identifiers import new_id
from schemas.workflow_contracts import (
    INGEST_DOCUMENT,
    REFRESH_ACCESS,
    REMOVE_DOCUMENT,
    REMOVE_SPACE,
    WorkflowContract,
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
        input_ref = {"document_id": document_id, "version": version, "from_stage": from_stage}
        workflow_id = f"ingest:{actor.tenant}:{document_id}:{version}"
        return await self._add(transaction, actor, INGEST_DOCUMENT, workflow_id, input_ref, document_id, space_id)

    async def removal(self, transaction: Transaction, actor: Actor, document: Row) -> str:
        return await self._of_document(transaction, actor, REMOVE_DOCUMENT, "remove", document)

    async def refresh(self, transaction: Transaction, actor: Actor, document: Row) -> str:
        """Both indexes are given the readers, tags and title of the moment it runs."""
        return await self._of_document(transaction, actor, REFRESH_ACCESS, "access", document)

    async def space_removal(self, transaction: Transaction, actor: Actor, space_id: str) -> str:
        workflow_id = f"remove-space:{actor.tenant}:{space_id}"
        return await self._add(
            transaction, actor, REMOVE_SPACE, workflow_id, {"space_id": space_id}, space_id, space_id
        )

    async def _of_document(
        self, transaction: Transaction, actor: Actor, contract: WorkflowContract, prefix: str, document: Row
    ) -> str:
        """One execution at a time under `prefix:tenant:document`."""
        workflow_id = f"{prefix}:{actor.tenant}:{document['id']}"
        input_ref = {"document_id": document["id"]}
        return await self._add(
            transaction, actor, contract, workflow_id, input_ref, document["id"], document["space_id"]
        )

    async def _add(
        self,
        transaction: Transaction,
        actor: Actor,
        contract: WorkflowContract,
        workflow_id: str,
        input_ref: dict[str, Any],
        subject: str,
        space_id: str,
    ) -> str:
        run_id = new_id()
        await runs_store.create(
            transaction,
            contract,
            run_id=run_id,
            workflow_id=workflow_id,
            actor=actor,
            input_ref=input_ref,
            subject=subject,
            space_id=space_id,
            traceparent=self._trace(),
        )
        return run_id
