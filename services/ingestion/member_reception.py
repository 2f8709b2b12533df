"""What a container held becomes documents of their own; members it no longer holds go (contract: Documents)."""

from __future__ import annotations

from schemas.access import Actor
from schemas.documents import Upload
from services.ingestion.reception import Reception
from services.ingestion.version_work import VersionWork
from services.stores import documents_store
from services.stores.database import Database


class MemberReception:
    """Called by the parse stage; running it again changes nothing."""

    def __init__(self, database: Database, reception: Reception) -> None:
        self._database = database
        self._reception = reception

    async def receive(self, actor: Actor, work: VersionWork, uploads: list[Upload]) -> None:
        started: list[str] = []
        for upload in uploads:
            async with documents_store.writing(self._database, work.tenant, work.document_id) as transaction:
                receipt = await self._reception.take(transaction, actor, upload, trusted=True)
            started += [receipt.run_id] if receipt.run_id else []
        started += await self._bury_missing(actor, work, {upload.external_id for upload in uploads})
        await self._reception.start_all(started)

    async def _bury_missing(self, actor: Actor, work: VersionWork, held: set[str]) -> list[str]:
        async with self._database.begin(work.tenant) as transaction:
            children = await documents_store.children(transaction, work.document_id)
            started: list[str] = []
            for child in children:
                if child["external_id"] not in held:
                    removals, cancelled = await self._reception.bury(transaction, actor, child)
                    started += [*removals, *cancelled]
        return started
