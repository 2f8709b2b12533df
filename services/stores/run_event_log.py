"""The stream people watch: `run_events`, in one sequence per run (architecture: Streaming to people).

`seq` grows by one over the whole run under the lock of its `run_streams` row. A step that writes text claims the pen with its
attempt; a later attempt takes it over, which raises the epoch and tells readers to forget the text so far, and a write by the
earlier attempt is then refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, bindparam, delete, func, select, text, update
from sqlalchemy.dialects.postgresql import JSONB, insert

from schemas.runs import TERMINAL_EVENTS, RunEvent, RunEventDraft
from services.stores.database import Row, Transaction
from services.stores.prepared import Prepared
from services.stores.tables.runs import run_events, run_stream_writers, run_streams

RUN_EVENTS_CHANNEL = "perdure_run_events"
_APPEND = Prepared(
    text(
        """
    WITH stream AS (
        INSERT INTO run_streams (run_id, epoch, seq) VALUES (:run_id, 0, :count)
        ON CONFLICT (run_id) DO UPDATE SET seq = run_streams.seq + excluded.seq
        RETURNING epoch, seq
    )
    INSERT INTO run_events (run_id, epoch, seq, type, data, at)
    SELECT :run_id, stream.epoch, stream.seq - :count + draft.place, draft.told->>'type', draft.told->'data', :at
    FROM stream, jsonb_array_elements(:drafts) WITH ORDINALITY AS draft(told, place)
    RETURNING seq, pg_notify(:channel, :run_id)
    """
    ).bindparams(bindparam("drafts", type_=JSONB), bindparam("channel", RUN_EVENTS_CHANNEL))
)
"""Places and events in one statement, for steps that need no pen."""


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
    if attempt is None and drafts:
        told = {
            "run_id": run_id,
            "count": len(drafts),
            "drafts": [{"type": draft.type, "data": draft.data} for draft in drafts],
            "at": transaction.now,
        }
        return max(int(row["seq"]) for row in await transaction.all(_APPEND, told))
    stream = await _advance(transaction, run_id, len(drafts))
    if attempt is not None:
        await _check_pen(transaction, run_id, step, attempt)
    await _write(transaction, run_id, stream["epoch"], stream["seq"] - len(drafts), drafts)
    return int(stream["seq"])


async def take_pen(transaction: Transaction, run_id: str, step: str, attempt: str) -> bool:
    """Makes `attempt` the writer of the step's text. True when an earlier attempt had written: an `answer.reset` went out."""
    await _advance(transaction, run_id, 0)
    holder = await transaction.one_or_none(_writer(run_id, step))
    row = {"run_id": run_id, "step": step, "attempt": attempt, "wrote_text": False}
    taken = insert(run_stream_writers).values(**row)
    await transaction.execute(taken.on_conflict_do_update(index_elements=["run_id", "step"], set_=row))
    if holder is None or not holder["wrote_text"]:
        return False
    stream = await _advance(transaction, run_id, 1, epochs=1)
    await _write(transaction, run_id, stream["epoch"], stream["seq"] - 1, [RunEventDraft(type="answer.reset")])
    return True


async def _advance(transaction: Transaction, run_id: str, events: int, epochs: int = 0) -> Row:
    """Takes the next places of the run's sequence and locks it; gives `epoch` and the last `seq` taken.

    The notice goes with it in one statement: this is written many times in every run.
    """
    first = insert(run_streams).values(run_id=run_id, epoch=epochs, seq=events)
    grown = {"epoch": run_streams.c.epoch + epochs, "seq": run_streams.c.seq + events}
    taken = first.on_conflict_do_update(index_elements=["run_id"], set_=grown)
    notice = func.pg_notify(RUN_EVENTS_CHANNEL, run_id)
    return (await transaction.all(taken.returning(run_streams.c.epoch, run_streams.c.seq, notice)))[0]


async def _check_pen(transaction: Transaction, run_id: str, step: str, attempt: str) -> None:
    holder = await transaction.one_or_none(_writer(run_id, step))
    if holder is None or holder["attempt"] != attempt:
        raise PenTaken(f"step {step} of run {run_id} is written by another attempt now")
    if not holder["wrote_text"]:
        of_step = (run_stream_writers.c.run_id == run_id) & (run_stream_writers.c.step == step)
        await transaction.execute(update(run_stream_writers).where(of_step).values(wrote_text=True))


async def _write(transaction: Transaction, run_id: str, epoch: int, seq: int, drafts: Sequence[RunEventDraft]) -> None:
    """Events after `seq`, in places that were taken."""
    rows = [
        {
            "run_id": run_id,
            "epoch": epoch,
            "seq": seq + number,
            "type": draft.type,
            "data": draft.data,
            "at": transaction.now,
        }
        for number, draft in enumerate(drafts, start=1)
    ]
    if rows:
        await transaction.execute(insert(run_events), rows)


async def after(transaction: Transaction, run_id: str, seq: int, limit: int = 500) -> list[RunEvent]:
    statement = (
        select(run_events)
        .where(run_events.c.run_id == run_id, run_events.c.seq > seq)
        .order_by(run_events.c.seq)
        .limit(limit)
    )
    return [
        RunEvent.model_validate({name: row[name] for name in RunEvent.model_fields})
        for row in await transaction.all(statement)
    ]


async def has_end(transaction: Transaction, run_id: str) -> bool:
    statement = select(run_events.c.seq).where(run_events.c.run_id == run_id, run_events.c.type.in_(TERMINAL_EVENTS))
    return await transaction.scalar(statement.limit(1)) is not None


async def prune_deltas(transaction: Transaction, run_ids: Sequence[str]) -> None:
    """Drops token rows of runs that ended long ago; `answer.text` holds what they added up to."""
    of_runs = run_events.c.run_id.in_(run_ids) & run_events.c.type.in_(["token", "thinking"])
    await transaction.execute(delete(run_events).where(of_runs))


def _writer(run_id: str, step: str) -> Select[Any]:
    return select(run_stream_writers).where(run_stream_writers.c.run_id == run_id, run_stream_writers.c.step == step)
