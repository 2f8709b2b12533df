"""What a turn remembers of its person: looked up once, when it begins, and kept with it."""

from __future__ import annotations

from typing import Any

from schemas.access import Actor
from services.agents.memories import Memories
from services.agents.turn_reading import RECALL_STEP, TurnWork, call_record
from services.stores import answers_store, documents_store, runs_store, sessions_store, turns_store
from services.stores.database import Database


class Recalling:
    """For turns of a session: a sub-agent is told what it needs by its brief."""

    def __init__(self, database: Database, memories: Memories) -> None:
        self._database = database
        self._memories = memories

    async def run(self, work: TurnWork) -> None:
        """A second run of the step finds the first one's result."""
        if work.session_id is None:
            return
        async with self._database.begin(work.tenant) as transaction:
            if await runs_store.step_result(transaction, work.run_id, RECALL_STEP) is not None:
                return
            turn = await turns_store.get(transaction, work.run_id)
            spoken = await sessions_store.of_run(transaction, work.run_id)
        if turn is None or not spoken:
            return
        actor = Actor(tenant=work.tenant, user=turn["actor_user"], key=turn["actor_key"])
        found = await self._memories.recall(actor, str(spoken[-1]["text"] or ""))
        used = await self._memories.sources_of(actor, found) if found else []
        kept: dict[str, Any] = {"lines": [row["text"] for row in found], "used": [each.model_dump() for each in used]}
        versions = [(each.document_id, each.version) for each in used]
        async with self._database.begin(work.tenant) as transaction:
            await documents_store.hold_sources(transaction, [document_id for document_id, _ in versions])
            records = [work.record, call_record(work.run_id, RECALL_STEP)]
            await answers_store.record_sources(transaction, records, versions)
            await turns_store.store_steps(transaction, work.run_id, {RECALL_STEP: kept})
