"""Sessions and their messages, as rows. Who changes what a session does next holds its row's lock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import bindparam, func, insert, select, text, update

from schemas.answers import Citation
from schemas.identifiers import session_stream
from services.stores import event_log
from services.stores.database import Row, Transaction
from services.stores.prepared import Prepared
from services.stores.runs_store import TEMPORAL
from services.stores.tables.agents import messages, sessions
from services.stores.tables.runs import runs

WAKE_SESSION = "wake_session"
"""The operation of an outbox row that wakes a session's workflow, starting it where none is open."""
_LOCK = Prepared(select(sessions).where(sessions.c.id == bindparam("session")).with_for_update())
_READ = Prepared(
    text(
        """
        UPDATE messages SET read_at = :now, read_in = :iteration
        WHERE run_id = :run_id AND role = 'user' AND read_at IS NULL
        """
    )
)
_OF_RUN = Prepared(
    select(messages)
    .where(messages.c.run_id == bindparam("run_id"), messages.c.role == "user")
    .order_by(messages.c.ordinal)
)
_UNREAD = Prepared(
    select(func.count())
    .select_from(messages)
    .where(messages.c.run_id == bindparam("run_id"), messages.c.role == "user", messages.c.read_at.is_(None))
)
_LINE = """
    WITH RECURSIVE line(session_id, up_to, forked_from, forked_after) AS (
        SELECT id, NULL::bigint, forked_from, forked_after FROM sessions WHERE id = :session
        UNION ALL
        SELECT sessions.id, line.forked_after, sessions.forked_from, sessions.forked_after
        FROM line JOIN sessions ON sessions.id = line.forked_from
    )
"""
"""A session and those it was forked from, each with the last message that counts."""
_EARLIER = Prepared(
    text(
        f"""
        {_LINE}
        SELECT messages.* FROM messages JOIN line ON messages.session_id = line.session_id
        WHERE (line.up_to IS NULL OR messages.ordinal <= line.up_to)
            AND messages.run_id <> :run_id AND messages.read_at IS NOT NULL
        ORDER BY messages.ordinal DESC LIMIT :most
        """  # noqa: S608 - both parts are constants
    )
)
_NEXT = Prepared(
    text(
        """
        SELECT messages.run_id, messages.ordinal FROM messages JOIN runs ON runs.id = messages.run_id
        WHERE messages.session_id = :session AND messages.role = 'user' AND messages.read_at IS NULL
            AND runs.ended_at IS NULL
        ORDER BY messages.mode = 'interrupt' DESC, messages.ordinal LIMIT 1
        """
    )
)
"""What interrupts goes first; else the order in which they came."""


async def create(
    transaction: Transaction,
    session_id: str,
    agent_id: str,
    user: str,
    *,
    title: str | None,
    incognito: bool,
    forked_from: str | None = None,
    forked_after: int | None = None,
) -> Row:
    row = {
        "id": session_id,
        "agent_id": agent_id,
        "user_id": user,
        "title": title,
        "incognito": incognito,
        "forked_from": forked_from,
        "forked_after": forked_after,
        "running": None,
        "created_at": transaction.now,
    }
    await transaction.execute(insert(sessions).values(**row))
    return row


async def get(transaction: Transaction, session_id: str) -> Row | None:
    return await transaction.one_or_none(select(sessions).where(sessions.c.id == session_id))


async def lock(transaction: Transaction, session_id: str) -> Row | None:
    """First in the one lock order: session, run, approval, document."""
    return await transaction.one_or_none(_LOCK, {"session": session_id})


async def newest_first(transaction: Transaction, user: str, before: str | None, limit: int) -> Sequence[Row]:
    statement = select(sessions).where(sessions.c.user_id == user).order_by(sessions.c.id.desc()).limit(limit)
    return await transaction.all(statement if before is None else statement.where(sessions.c.id < before))


async def set_running(transaction: Transaction, session_id: str, run_id: str | None) -> None:
    await transaction.execute(update(sessions).where(sessions.c.id == session_id).values(running=run_id))


async def running(transaction: Transaction, session: Row) -> str | None:
    """The run of the turn under way, if it has not ended."""
    return next(iter(await running_turns(transaction, [session])), None)


async def running_turns(transaction: Transaction, sessions_: Sequence[Row]) -> set[str]:
    """The runs of the turns under way in these sessions."""
    chosen = [session["running"] for session in sessions_ if session["running"] is not None]
    if not chosen:
        return set()
    rows = await transaction.all(select(runs.c.id).where(runs.c.id.in_(chosen), runs.c.ended_at.is_(None)))
    return {row["id"] for row in rows}


async def next_run(transaction: Transaction, session_id: str) -> str | None:
    """The run of the message whose turn it is."""
    row = await transaction.one_or_none(_NEXT, {"session": session_id})
    return None if row is None else row["run_id"]


async def waiting(transaction: Transaction, session_id: str) -> int:
    """How many messages have not had their turn."""
    open_ = select(func.count()).select_from(messages.join(runs, runs.c.id == messages.c.run_id))
    wanted = (messages.c.session_id == session_id, messages.c.read_at.is_(None), runs.c.ended_at.is_(None))
    return int(await transaction.scalar(open_.where(*wanted)))


async def in_line(transaction: Transaction, session_id: str, ancestor: str) -> bool:
    """Whether it is this session or one that this was forked from, however far back."""
    found = text(f"{_LINE} SELECT 1 FROM line WHERE session_id = :ancestor")  # noqa: S608 - both parts are constants
    return await transaction.scalar(found, {"session": session_id, "ancestor": ancestor}) is not None


async def wake(transaction: Transaction, session_id: str, actor: str | None) -> None:
    """Its workflow looks at its messages after the commit."""
    payload = {"operation": WAKE_SESSION, "session_id": session_id, "actor": actor}
    await event_log.enqueue(transaction, TEMPORAL, session_stream(session_id), payload)


# messages


async def add(
    transaction: Transaction, session_id: str, message_id: str, run_id: str, text_: str, mode: str | None
) -> None:
    row = {"session_id": session_id, "message_id": message_id, "run_id": run_id, "text": text_, "mode": mode}
    await transaction.execute(insert(messages).values(role="user", created_at=transaction.now, **row))


async def add_reply(
    transaction: Transaction, session_id: str, run_id: str, text_: str, citations: Sequence[Citation]
) -> None:
    """The assistant's message of a turn; it counts as read, since the model wrote it."""
    row: dict[str, Any] = {
        "session_id": session_id,
        "message_id": f"reply:{run_id}",
        "run_id": run_id,
        "role": "assistant",
        "text": text_,
        "citations": [citation.model_dump() for citation in citations],
        "created_at": transaction.now,
        "read_at": transaction.now,
    }
    await transaction.execute(insert(messages).values(**row))


async def by_message_id(transaction: Transaction, session_id: str, message_id: str) -> Row | None:
    wanted = (messages.c.session_id == session_id, messages.c.message_id == message_id)
    return await transaction.one_or_none(select(messages).where(*wanted))


async def after(transaction: Transaction, session_id: str, ordinal: int, limit: int) -> Sequence[Row]:
    """The session's own messages, oldest first."""
    wanted = (messages.c.session_id == session_id, messages.c.ordinal > ordinal)
    return await transaction.all(select(messages).where(*wanted).order_by(messages.c.ordinal).limit(limit))


async def last_of_run(transaction: Transaction, run_id: str) -> Row | None:
    statement = select(messages).where(messages.c.run_id == run_id).order_by(messages.c.ordinal.desc()).limit(1)
    return await transaction.one_or_none(statement)


async def read_new(transaction: Transaction, run_id: str, iteration: int) -> None:
    """What people said to this run and it has not read: from here on the model has it, since this iteration."""
    await transaction.run(_READ, {"run_id": run_id, "iteration": iteration, "now": transaction.now})


async def of_run(transaction: Transaction, run_id: str) -> Sequence[Row]:
    return await transaction.all(_OF_RUN, {"run_id": run_id})


async def unread(transaction: Transaction, run_id: str) -> int:
    return int(await transaction.scalar(_UNREAD, {"run_id": run_id}))


async def earlier(transaction: Transaction, session_id: str, run_id: str, most: int) -> list[Row]:
    """The last `most` messages of earlier turns, oldest first, through all forks."""
    rows = await transaction.all(_EARLIER, {"session": session_id, "run_id": run_id, "most": most})
    return list(reversed(rows))
