"""The door to sessions: a message is a row first, and the session's lock decides what its mode means at that moment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from schemas.access import Actor
from schemas.conversations import (
    ForkDraft,
    MessageAccepted,
    MessageDraft,
    MessageView,
    SessionDraft,
    SessionView,
)
from schemas.errors import Conflict, InvalidRequest, NotFound
from schemas.identifiers import new_id, run_stream, session_stream
from schemas.settings import AgentSettings
from schemas.workflow_contracts import AGENT_TURN
from services.access import withholding
from services.documents.clean_text import clean_text
from services.stores import (
    agents_store,
    idempotency_store,
    runs_store,
    sessions_store,
    turns_store,
)
from services.stores.database import Database, Row, Transaction
from services.stores.runs_store import TEMPORAL

DeliverHead = Callable[[str, str], Awaitable[None]]
CurrentTrace = Callable[[], str | None]
_UNKNOWN = "There is no session with this id that this key can see."


class Sessions:
    """Needs only Postgres, and Temporal when it is there."""

    def __init__(
        self, database: Database, deliver_head: DeliverHead, settings: AgentSettings, trace: CurrentTrace
    ) -> None:
        self._database = database
        self._deliver_head = deliver_head
        self._settings = settings
        self._trace = trace

    async def create(self, actor: Actor, draft: SessionDraft) -> SessionView:
        async with self._database.begin(actor.tenant) as transaction:
            if await agents_store.get(transaction, draft.agent_id) is None:
                raise NotFound("There is no agent with this id.", agent=draft.agent_id)
            title = clean_text(draft.title) if draft.title else None
            row = await sessions_store.create(
                transaction, new_id(), draft.agent_id, actor.user, title=title, incognito=draft.incognito
            )
            view = _view(row, None)
            await idempotency_store.complete(transaction, view)
        return view

    async def get(self, actor: Actor, session_id: str) -> SessionView:
        async with self._database.begin(actor.tenant) as transaction:
            row = await self._own(transaction, actor, session_id)
            return _view(row, await sessions_store.running(transaction, row))

    async def newest(self, actor: Actor, before: str | None, limit: int) -> list[SessionView]:
        async with self._database.begin(actor.tenant) as transaction:
            rows = await sessions_store.newest_first(transaction, actor.user, before, limit)
            running = await sessions_store.running_turns(transaction, rows)
        return [_view(row, row["running"] if row["running"] in running else None) for row in rows]

    async def send(self, actor: Actor, session_id: str, draft: MessageDraft) -> MessageAccepted:
        """The message, its run and what wakes its session, in one transaction. The same message id gives the same reply."""
        text = clean_text(draft.text)
        if not text.strip() or len(text) > self._settings.message_chars:
            bound = f"PERDURE_AGENTS__MESSAGE_CHARS={self._settings.message_chars}"
            raise InvalidRequest(f"A message has 1 to {self._settings.message_chars} characters ({bound}).")
        message_id = draft.message_id or new_id()
        async with self._database.begin(actor.tenant) as transaction:
            await self._own(transaction, actor, session_id)
            session = await sessions_store.lock(transaction, session_id)
            assert session is not None
            accepted, woken = await self._accept(transaction, actor, session, message_id, text, draft)
            await idempotency_store.complete(transaction, accepted)
        for stream in woken:
            await self._deliver_head(TEMPORAL, stream)
        return accepted

    async def _accept(
        self, transaction: Transaction, actor: Actor, session: Row, message_id: str, text: str, draft: MessageDraft
    ) -> tuple[MessageAccepted, list[str]]:
        """The reply, and the streams that have something to deliver."""
        before = await sessions_store.by_message_id(transaction, session["id"], message_id)
        if before is not None:
            if before["text"] != text:
                raise Conflict("Another message has this message_id already.", type="message_id_taken")
            return MessageAccepted(run_id=before["run_id"]), []
        running = await sessions_store.running(transaction, session)
        if running is not None and draft.mode == "reject":
            raise Conflict("A turn of this session is under way.", type="turn_running", run_id=running)
        if running is not None and draft.mode == "steer":
            await sessions_store.add(transaction, session["id"], message_id, running, text, draft.mode)
            return MessageAccepted(run_id=running), []
        if await sessions_store.waiting(transaction, session["id"]) >= self._settings.queued_messages:
            bound = f"PERDURE_AGENTS__QUEUED_MESSAGES={self._settings.queued_messages}"
            raise Conflict(f"Too many messages of this session wait for their turn ({bound}).", type="queue_full")
        run_id = new_id()
        await sessions_store.add(transaction, session["id"], message_id, run_id, text, draft.mode)
        await runs_store.create(
            transaction,
            AGENT_TURN,
            run_id=run_id,
            workflow_id=f"turn:{actor.tenant}:{run_id}",
            actor=actor,
            input_ref={"session_id": session["id"]},
            subject=session["id"],
            traceparent=self._trace(),
            start=False,
        )
        await turns_store.create(transaction, run_id, agent_id=session["agent_id"], session_id=session["id"])
        woken = [session_stream(session["id"])]
        if running is not None and draft.mode == "interrupt":
            await runs_store.request_cancel(transaction, running, actor.user)
            woken.append(run_stream(running))
        await sessions_store.wake(transaction, session["id"], actor.user)
        return MessageAccepted(run_id=run_id), woken

    async def messages(self, actor: Actor, session_id: str, after: int, limit: int) -> list[MessageView]:
        """Oldest first; an assistant's without text when a document it came from may not be read now."""
        async with self._database.begin(actor.tenant) as transaction:
            await self._own(transaction, actor, session_id)
            rows = await sessions_store.after(transaction, session_id, after, limit)
            replies = [run_stream(row["run_id"]) for row in rows if row["role"] == "assistant"]
            verdicts = await withholding.of_records(transaction, actor, replies)
        said = withholding.Verdict()
        return [
            _message(row, verdicts[run_stream(row["run_id"])] if row["role"] == "assistant" else said) for row in rows
        ]

    async def fork(self, actor: Actor, session_id: str, draft: ForkDraft) -> SessionView:
        """A new session that goes on from the end of one of this one's turns: by reference, nothing is copied."""
        async with self._database.begin(actor.tenant) as transaction:
            session = await self._own(transaction, actor, session_id)
            run = await runs_store.get(transaction, draft.after_run_id)
            last = await sessions_store.last_of_run(transaction, draft.after_run_id)
            in_line = last is not None and await sessions_store.in_line(transaction, session_id, last["session_id"])
            if run is None or last is None or not in_line:
                raise NotFound("There is no such turn in this session.", run=draft.after_run_id)
            if run["ended_at"] is None:
                raise Conflict("That turn has not ended yet; fork after it has.", type="turn_running")
            row = await sessions_store.create(
                transaction,
                new_id(),
                session["agent_id"],
                actor.user,
                title=session["title"],
                incognito=session["incognito"],
                forked_from=last["session_id"],
                forked_after=last["ordinal"],
            )
            view = _view(row, None)
            await idempotency_store.complete(transaction, view)
        return view

    @staticmethod
    async def _own(transaction: Transaction, actor: Actor, session_id: str) -> Row:
        row = await sessions_store.get(transaction, session_id)
        if row is None or row["user_id"] != actor.user:
            raise NotFound(_UNKNOWN)
        return row


def _message(row: Row, verdict: withholding.Verdict) -> MessageView:
    hidden = verdict.withheld or row["text"] is None
    return MessageView(
        id=str(row["ordinal"]),
        message_id=row["message_id"],
        role=row["role"],
        text=None if hidden else row["text"],
        mode=row["mode"],
        run_id=row["run_id"],
        withheld=hidden,
        stale=verdict.stale,
        citations=[] if hidden else row["citations"] or [],
        created_at=row["created_at"],
        read_at=row["read_at"],
    )


def _view(row: Row, running: str | None) -> SessionView:
    values = {name: row[name] for name in ("id", "agent_id", "title", "incognito", "forked_from", "created_at")}
    return SessionView(**values, running=running)
