"""The last step of AgentTurn: its text checked and kept, its run ended, or the turn goes on because somebody has said more."""

from __future__ import annotations

from schemas.runs import RunEnd, RunEventDraft
from schemas.settings import AnswerSettings
from services.agents import approval_events, limits
from services.agents.turn_reading import TurnRows, TurnWork, turn_rows
from services.events import run_ending
from services.retrieval.citations import check_citations, read_citations, supplied_numbers
from services.stores import (
    approvals_store,
    documents_store,
    run_event_log,
    runs_store,
    scrub_store,
    sessions_store,
    turns_store,
)
from services.stores.database import Database, Transaction

STEERED = "steered"
VERSION = 1


class TurnEnding:
    """One transaction under the session's lock, so no message can come in between unseen."""

    def __init__(self, database: Database, answers: AnswerSettings) -> None:
        self._database = database
        self._answers = answers

    async def end(self, work: TurnWork, end: RunEnd) -> dict[str, int]:
        """Counts: `steered` when the turn goes on. A turn that failed or was stopped keeps what it had said."""
        async with self._database.begin(work.tenant) as transaction:
            session = await sessions_store.lock(transaction, work.session_id) if work.session_id else None
            if end.state == "succeeded" and await sessions_store.unread(transaction, work.run_id):
                return {STEERED: 1}
            run = await runs_store.get(transaction, work.run_id, for_update=True)
            if run is None or run["ended_at"] is not None:
                return {}
            await self._withdraw(transaction, work, end)
            turn = await turns_store.get(transaction, work.run_id)
            if turn is not None and turn["config"] is not None:
                end = await self._keep_words(transaction, work, await turn_rows(transaction, work), end)
            if session is not None and session["running"] == work.run_id:
                await sessions_store.set_running(transaction, session["id"], None)
            await run_ending.end(transaction, work.run_id, end)
            await scrub_store.withhold_if_removed(transaction, work.record)
        return {}

    async def _keep_words(self, transaction: Transaction, work: TurnWork, rows: TurnRows, end: RunEnd) -> RunEnd:
        passages = rows.transcript.all_passages()
        said = rows.transcript.text
        if end.state != "succeeded":  # a reply that was cut off is in the stream alone
            said = max(said, await run_event_log.text_so_far(transaction, work.run_id), key=len)
        threshold = self._answers.support_threshold
        cited = read_citations(said, supplied_numbers(passages))
        checked = check_citations(cited, passages, support_threshold=threshold)
        usage = limits.usage(rows.transcript.spent())
        await documents_store.hold_sources(transaction, {passage.document_id for passage in passages})
        events = [
            RunEventDraft(type="answer.text", data={"text": checked.text}),
            RunEventDraft(type="citations", data=[citation.model_dump() for citation in checked.citations]),
            RunEventDraft(type="usage", data=usage),
        ]
        await run_event_log.append(transaction, work.run_id, events)
        if work.session_id is not None and checked.text:
            await sessions_store.add_reply(transaction, work.session_id, work.run_id, checked.text, checked.citations)
        return end.model_copy(update={"usage": usage})

    async def _withdraw(self, transaction: Transaction, work: TurnWork, end: RunEnd) -> None:
        """What was asked for and not decided is not asked any more; what was delegated is stopped."""
        if end.state == "succeeded":
            return
        for child in await runs_store.open_children(transaction, work.run_id, "turn"):
            await runs_store.request_cancel(transaction, child, None)
        asked = await approvals_store.pending_of_run(transaction, work.run_id)
        rows = [await approvals_store.get(transaction, approval_id, for_update=True) for approval_id in asked]
        pending = [row for row in rows if row is not None and row["state"] == "pending"]
        for row in pending:
            await approvals_store.close(transaction, row, "cancelled")
        for row in pending:
            await approval_events.tell_over(transaction, row, "cancelled")
