"""Takes the words of a removed document out of records that had to hold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ARRAY, ColumnElement, Table, Text, bindparam, cast, delete, func, literal, select, text, update
from sqlalchemy.dialects.postgresql import JSONB

from schemas.identifiers import run_stream
from schemas.runs import TEXT_EVENTS
from services.stores.database import Transaction
from services.stores.prepared import Prepared
from services.stores.tables.agents import memories
from services.stores.tables.documents import documents
from services.stores.tables.facts import audit_log, domain_events
from services.stores.tables.runs import answers, run_events, runs, sources

_REMOVED_SOURCE = Prepared(
    select(sources.c.record)
    .join(documents, documents.c.id == sources.c.document_id)
    .where(sources.c.record == bindparam("record"), documents.c.removed_at.is_not(None))
    .limit(1)
)
_SCRUB_RECEIPTS = Prepared(
    text(
        """
        UPDATE idempotency_keys SET response = jsonb_set(response, '{documents}', (
            SELECT jsonb_agg(
                CASE WHEN receipt->>'document_id' = :document THEN receipt || '{"external_id": ""}' ELSE receipt END
                ORDER BY place
            )
            FROM jsonb_array_elements(response->'documents') WITH ORDINALITY AS told(receipt, place)
        ))
        WHERE response->'documents' @> jsonb_build_array(jsonb_build_object('document_id', CAST(:document AS text)))
        """
    )
)
_EMPTY_STEPS = Prepared(
    text(
        """
        UPDATE run_steps SET result = result || '{"text": "", "thinking": "", "passages": [], "summary": ""}'
        WHERE run_id = ANY(:runs) AND (step LIKE 'call:%' OR step LIKE 'think:%') AND result IS NOT NULL
        """
    ).bindparams(bindparam("runs", type_=ARRAY(Text)))
)
_EMPTY_RECALLED = Prepared(
    text("UPDATE run_steps SET result = '{}' WHERE run_id = ANY(:runs) AND step = 'recall'").bindparams(
        bindparam("runs", type_=ARRAY(Text))
    )
)
_EMPTY_CALLS = Prepared(
    text(
        """
        UPDATE run_steps AS steps SET result = jsonb_set(steps.result, '{calls}', (
            SELECT coalesce(jsonb_agg(call || '{"raw": "{}", "arguments": {}}' ORDER BY place), '[]')
            FROM jsonb_array_elements(steps.result->'calls') WITH ORDINALITY AS made(call, place)
        ))
        FROM runs
        WHERE runs.id = steps.run_id AND runs.ended_at IS NOT NULL AND steps.run_id = ANY(:runs)
            AND steps.step LIKE 'think:%' AND steps.result ? 'calls'
        """
    ).bindparams(bindparam("runs", type_=ARRAY(Text)))
)
"""What a turn under way still has to call keeps its arguments; they go when it ends."""
_EMPTY_REQUESTS = Prepared(
    text(
        """
        UPDATE approval_contents AS words SET arguments = '{}', edited = NULL, reason = NULL, preview = NULL, feedback = NULL
        FROM approvals JOIN runs ON runs.id = approvals.run_id
        WHERE words.approval_id = approvals.id AND approvals.run_id = ANY(:runs) AND runs.ended_at IS NOT NULL
        """
    ).bindparams(bindparam("runs", type_=ARRAY(Text)))
)
_EMPTY_ARTIFACTS = Prepared(
    text("UPDATE artifacts SET name = '', blob_key = NULL, sha256 = id WHERE run_id = ANY(:runs)").bindparams(
        bindparam("runs", type_=ARRAY(Text))
    )
)
"""What a run made may repeat what it read. The bytes are swept when nothing names them."""
_EMPTY_MESSAGES = Prepared(
    text(
        "UPDATE messages SET text = NULL, citations = '[]' WHERE run_id = ANY(:runs) AND role = 'assistant'"
    ).bindparams(bindparam("runs", type_=ARRAY(Text)))
)
_EMPTY_OF_TURNS = (
    _EMPTY_STEPS,
    _EMPTY_RECALLED,
    _EMPTY_CALLS,
    _EMPTY_REQUESTS,
    _EMPTY_MESSAGES,
    _EMPTY_ARTIFACTS,
)
REMOVED_DETAIL = "The document of this run was removed."


async def scrub_audit(transaction: Transaction, streams: Sequence[str], fields: Sequence[str]) -> None:
    cleaned: ColumnElement[Any] = audit_log.c.data
    for field in fields:
        cleaned = cleaned.op("-")(field)
    await transaction.execute(update(audit_log).where(audit_log.c.stream.in_(list(streams))).values(data=cleaned))


async def scrub_run_errors(transaction: Transaction, document_id: str) -> None:
    """Why a run failed may quote the document's name or text: the code stays, the sentence goes, everywhere alike."""
    about = select(runs.c.id).where(runs.c.subject == document_id)
    ids = [row["id"] for row in await transaction.all(about)]
    streams = [run_stream(run_id) for run_id in ids]
    failed = func.jsonb_typeof(runs.c.error) == "object"
    told = _without_detail(runs.c.error, "detail")
    await transaction.execute(update(runs).where(runs.c.id.in_(ids), failed).values(error=told))
    for table in (domain_events, audit_log):
        told = _without_detail(table.c.data, "error", "detail")
        await transaction.execute(update(table).where(_of_streams(table, streams)).values(data=told))
    ends = run_events.c.run_id.in_(ids) & (run_events.c.type == "run.failed")
    await transaction.execute(update(run_events).where(ends).values(data=_without_detail(run_events.c.data, "detail")))


def _of_streams(table: Table, streams: Sequence[str]) -> ColumnElement[bool]:
    return table.c.stream.in_(streams) & (func.jsonb_typeof(table.c.data["error"]) == "object")


def _without_detail(column: ColumnElement[Any], *path: str) -> ColumnElement[Any]:
    told = func.to_jsonb(cast(literal(REMOVED_DETAIL), Text))
    return cast(func.jsonb_set(column, cast(list(path), ARRAY(Text)), told, False), JSONB)


async def scrub_receipts(transaction: Transaction, document_id: str) -> None:
    """A stored reply to an upload names its file: a replay after the removal gives the receipt without the name."""
    await transaction.run(_SCRUB_RECEIPTS, {"document": document_id})


async def withhold_answers(transaction: Transaction, document_id: str) -> None:
    """Text that came from the document leaves stored answers and run events for good, not only from sight."""
    records = await transaction.all(select(sources.c.record).where(sources.c.document_id == document_id))
    await _empty(transaction, [row["record"] for row in records])


async def withhold_if_removed(transaction: Transaction, record: str) -> None:
    """For text that was written after one of its documents had been removed: the removal could not take it along."""
    if await transaction.scalar(_REMOVED_SOURCE, {"record": record}) is not None:
        await _empty(transaction, [record])


async def _empty(transaction: Transaction, records: Sequence[str]) -> None:
    remembered = [record.removeprefix("memory:") for record in records if record.startswith("memory:")]
    if remembered:
        await transaction.execute(delete(memories).where(memories.c.id.in_(remembered)))
    run_ids = [record.removeprefix("run:") for record in records if record.startswith("run:")]
    if not run_ids:
        return
    alone = answers.c.request.op("-")("conversation")
    emptied: dict[str, Any] = {"answer": None, "citations": [], "passages": None, "request": alone}
    await transaction.execute(update(answers).where(answers.c.run_id.in_(run_ids)).values(**emptied))
    from_it = run_events.c.run_id.in_(run_ids) & run_events.c.type.in_(sorted(TEXT_EVENTS))
    await transaction.execute(update(run_events).where(from_it).values(data={"withheld": True}))
    for statement in _EMPTY_OF_TURNS:
        await transaction.run(statement, {"runs": run_ids})
