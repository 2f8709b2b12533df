"""Removing a space: its documents a window at a time, then what is left of the space itself."""

from __future__ import annotations

from schemas.access import Actor
from services.ingestion.reception import Reception
from services.stores import documents_store, embeddings_store, spaces_store
from services.stores.database import Database

WINDOW = 50


class SpaceRemoval:
    """The space has a tombstone already: nothing in it is found or read any more."""

    def __init__(self, database: Database, reception: Reception) -> None:
        self._database = database
        self._reception = reception

    async def bury_window(self, tenant: str, space_id: str) -> dict[str, int]:
        """Gives every living document among the first WINDOW its tombstone and removal. Counts: left, buried.

        Called again until nothing is left; a document stays in the window until it is a skeleton.
        """
        async with self._database.begin(tenant) as transaction:
            ids = await documents_store.living_of_space(transaction, space_id, WINDOW)
        buried = 0
        for document_id in ids:
            buried += await self._bury(tenant, document_id)
        return {"left": len(ids), "buried": buried}

    async def _bury(self, tenant: str, document_id: str) -> int:
        system = Actor(tenant=tenant, user="system")
        async with self._database.begin(tenant) as transaction:
            row = await documents_store.get(transaction, document_id)
            if row is None or row["tombstoned_at"] is not None:
                return 0
            removals, cancelled = await self._reception.bury(transaction, system, row)
        await self._reception.start_all([*removals, *cancelled])
        return len(removals[:1])

    async def forget(self, tenant: str, space_id: str) -> dict[str, int]:
        async with self._database.begin(tenant) as transaction:
            await embeddings_store.forget_space(transaction, space_id)
            await spaces_store.leave_skeleton(transaction, space_id)
        return {}
