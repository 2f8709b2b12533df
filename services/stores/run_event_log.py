"""The stream people watch: `run_events`, in one sequence per run (architecture: Streaming to people).

`seq` grows by one over the whole run under the lock of its `run_streams` row. A step that writes text claims the pen with its
attempt; a later attempt takes it over, which raises the epoch and tells readers to forget the text so far, and a write by the
earlier attempt is then refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Integer, bindparam, delete, func, select, text
from sqlalchemy.dialects.postgresql import JSONB

from schemas.runs import TERMINAL_EVENTS, RunEvent, RunEventDraft
from services.stores.database import Transaction
from services.stores.prepared import Prepared
from services.stores.tables.runs import run_events

RUN_EVENTS_CHANNEL = "perdure_run_events"
_PEN = """
    UPDATE run_stream_writers SET wrote_text = true WHERE run_id = :run_id AND step = :step AND attempt = :attempt
    RETURNING 1
"""
_STREAM = """
    INSERT INTO run_streams (run_id, epoch, seq) SELECT :run_id, :epochs, :count {source}
    ON CONFLICT (run_id) DO UPDATE SET seq = run_streams.seq + excluded.seq, epoch = run_streams.epoch + excluded.epoch
    RETURNING epoch, seq
"""
_EVENTS = """
    INSERT INTO run_events (run_id, epoch, seq, type, data, at)
    SELECT :run_id, stream.epoch, stream.seq - :count + draft.place, draft.told->>'type', draft.told->'data', :at
    FROM stream, jsonb_array_elements(:drafts) WITH ORDINALITY AS draft(told, place)
    RETURNING seq, pg_notify(:channel, :run_id)
"""


def _append_statement(*parts: str) -> Prepared:
    statement = text(f"WITH {', '.join(parts)} {_EVENTS}")
    return Prepared(statement.bindparams(bindparam("drafts", type_=JSONB), bindparam("channel", RUN_EVENTS_CHANNEL)))


_APPEND = _append_statement(f"stream AS ({_STREAM.format(source='')})")
"""Places and events in one statement, for steps that need no pen."""
_APPEND_WITH_PEN = _append_statement(f"pen AS ({_PEN})", f"stream AS ({_STREAM.format(source='FROM pen')})")
"""Nothing is written, and no place taken, without the pen. Its row is locked before the stream's, as `take_pen` does."""
_OFFER_PEN = Prepared(
    text(
        """
        INSERT INTO run_stream_writers (run_id, step, attempt, wrote_text) VALUES (:run_id, :step, :attempt, false)
        ON CONFLICT (run_id, step) DO NOTHING
        """
    )
)
_TAKE_PEN = Prepared(
    text(
        """
        UPDATE run_stream_writers AS writer SET attempt = :attempt, wrote_text = false
        FROM (SELECT wrote_text FROM run_stream_writers WHERE run_id = :run_id AND step = :step FOR UPDATE) AS earlier
        WHERE writer.run_id = :run_id AND writer.step = :step
        RETURNING earlier.wrote_text
        """
    )
)


_AFTER = Prepared(
    select(run_events)
    .where(run_events.c.run_id == bindparam("run_id"), run_events.c.seq > bindparam("after"))
    .order_by(run_events.c.seq)
    .limit(bindparam("most", type_=Integer))
)


class PenTaken(Exception):
    """A later attempt of this step writes now; what this one had to say is void."""


async def append(
    transaction: Transaction,
    run_id: str,
    drafts: Sequence[RunEventDraft],
    *,
    step: str = "",
    attempt: str | None = None,
) -> int:
    """Writes events and gives the last `seq`. With `attempt`, the step must hold the pen, else PenTaken."""
    if not drafts:
        return 0
    if attempt is None:
        return await _append(transaction, _APPEND, run_id, drafts)
    seq = await _append(transaction, _APPEND_WITH_PEN, run_id, drafts, step=step, attempt=attempt)
    if not seq:
        raise PenTaken(f"step {step} of run {run_id} is written by another attempt now")
    return seq


async def take_pen(transaction: Transaction, run_id: str, step: str, attempt: str) -> bool:
    """Makes `attempt` the writer of the step's text. True when an earlier attempt had written: an `answer.reset` went out."""
    pen = {"run_id": run_id, "step": step, "attempt": attempt}
    await transaction.run(_OFFER_PEN, pen)
    if not await transaction.scalar(_TAKE_PEN, pen):
        return False
    await _append(transaction, _APPEND, run_id, [RunEventDraft(type="answer.reset")], epochs=1)
    return True


async def _append(
    transaction: Transaction,
    statement: Prepared,
    run_id: str,
    drafts: Sequence[RunEventDraft],
    *,
    epochs: int = 0,
    **pen: str,
) -> int:
    """The last `seq` written; 0 when nothing was."""
    told = {
        "run_id": run_id,
        "epochs": epochs,
        "count": len(drafts),
        "drafts": [{"type": draft.type, "data": draft.data} for draft in drafts],
        "at": transaction.now,
        **pen,
    }
    return max((int(row["seq"]) for row in await transaction.all(statement, told)), default=0)


async def after(transaction: Transaction, run_id: str, seq: int, limit: int = 500) -> list[RunEvent]:
    rows = await transaction.all(_AFTER, {"run_id": run_id, "after": seq, "most": limit})
    return [RunEvent.model_validate({name: row[name] for name in RunEvent.model_fields}) for row in rows]


async def text_so_far(transaction: Transaction, run_id: str) -> str:
    """What a reader has before them now: the text since the last `answer.reset`."""
    reset = (
        select(func.coalesce(func.max(run_events.c.seq), 0))
        .where(run_events.c.run_id == run_id, run_events.c.type == "answer.reset")
        .scalar_subquery()
    )
    pieces = select(run_events.c.data).where(
        run_events.c.run_id == run_id, run_events.c.type == "token", run_events.c.seq > reset
    )
    rows = await transaction.all(pieces.order_by(run_events.c.seq))
    return "".join(row["data"].get("text", "") for row in rows)


async def has_end(transaction: Transaction, run_id: str) -> bool:
    statement = select(run_events.c.seq).where(run_events.c.run_id == run_id, run_events.c.type.in_(TERMINAL_EVENTS))
    return await transaction.scalar(statement.limit(1)) is not None


async def prune_deltas(transaction: Transaction, run_ids: Sequence[str]) -> None:
    """Drops token rows of runs that ended long ago; `answer.text` holds what they added up to."""
    of_runs = run_events.c.run_id.in_(run_ids) & run_events.c.type.in_(["token", "thinking"])
    await transaction.execute(delete(run_events).where(of_runs))
