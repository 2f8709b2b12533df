"""Stage enrich: needs a chat model; without one it is skipped and says so."""

from __future__ import annotations

from schemas.runs import RunEventDraft
from services.ingestion.version_work import VersionWork, enter_stage
from services.stores import documents_store, run_event_log
from services.stores.database import Database


class EnrichStage:
    """Searchable since publish; the document is `ready` after this stage whatever it finds."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def run(self, work: VersionWork) -> dict[str, int]:
        async with documents_store.writing(self._database, work.tenant, work.document_id) as transaction:
            await enter_stage(transaction, work, "enriching")
            skipped = {
                "stage": "enriching",
                "done": 0,
                "total": 0,
                "unit": "",
                "skipped": "no chat model is configured",
            }
            await run_event_log.append(transaction, work.run_id, [RunEventDraft(type="stage", data=skipped)])
        return {"enriched": 0}
