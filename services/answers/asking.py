"""The door to answers: a question becomes a run; an answer is read again only by who may read what it came from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from schemas.access import Actor
from schemas.answers import AnswerRequest, AnswerStarted, AnswerView, Citation
from schemas.errors import InvalidRequest, NotFound
from schemas.identifiers import new_id, run_stream
from schemas.settings import AnswerSettings
from schemas.workflow_contracts import ANSWER_QUESTION
from services.access import withholding
from services.documents.clean_text import clean_text
from services.gateways.model_names import check_model_name
from services.retrieval.search import asked_spaces
from services.stores import answers_store, idempotency_store, runs_store, spaces_store
from services.stores.database import Database

DeliverHead = Callable[[str, str], Awaitable[None]]
CurrentTrace = Callable[[], str | None]


class Asking:
    """Starts and shows answers; needs only Postgres, and Temporal when it is there."""

    def __init__(
        self,
        database: Database,
        deliver_head: DeliverHead,
        settings: AnswerSettings,
        default_model: str,
        trace: CurrentTrace,
    ) -> None:
        self._database = database
        self._deliver_head = deliver_head
        self._settings = settings
        self._default_model = default_model
        self._trace = trace

    async def start(self, actor: Actor, request: AnswerRequest) -> AnswerStarted:
        """Run, answer row and outbox row in one transaction; then the workflow is started at once when Temporal is there."""
        question = clean_text(request.question).strip()
        if not question or len(question) > self._settings.question_chars:
            bound = f"PERDURE_ANSWERS__QUESTION_CHARS={self._settings.question_chars}"
            raise InvalidRequest(f"A question has 1 to {self._settings.question_chars} characters ({bound}).")
        model = check_model_name(request.model or self._default_model)
        started = AnswerStarted(run_id=new_id(), answer_id=new_id())
        async with self._database.begin(actor.tenant) as transaction:
            named = asked_spaces(request.space, request.spaces)
            spaces = await spaces_store.resolve_all(transaction, actor, named) if named else None
            stored = request.model_copy(update={"question": question, "space": None, "spaces": spaces})
            await runs_store.create(
                transaction,
                ANSWER_QUESTION,
                run_id=started.run_id,
                workflow_id=f"answer:{actor.tenant}:{started.run_id}",
                actor=actor,
                input_ref={"answer_id": started.answer_id},
                subject=started.answer_id,
                traceparent=self._trace(),
            )
            kept = stored.model_dump(mode="json")
            await answers_store.create(transaction, started.answer_id, started.run_id, actor.user, kept, model)
            await idempotency_store.complete(transaction, started)
        await self._deliver_head(runs_store.TEMPORAL, run_stream(started.run_id))
        return started

    async def view(self, actor: Actor, answer_id: str) -> AnswerView:
        """404 unless it is the caller's own; without text when a source may not be read any more (invariant 9)."""
        async with self._database.begin(actor.tenant) as transaction:
            row = await answers_store.get(transaction, answer_id)
            if row is None or row["user_id"] != actor.user:
                raise NotFound("There is no such answer that this key can see.", answer=answer_id)
            verdict = await withholding.of_record(transaction, actor, f"run:{row['run_id']}")
        shown = not verdict.withheld
        return AnswerView(
            id=row["id"],
            run_id=row["run_id"],
            state=row["state"],
            question=row["question"],
            answer=row["answer"] if shown else None,
            answered=row["answered"],
            withheld=verdict.withheld,
            stale=verdict.stale,
            citations=[Citation.model_validate(each) for each in row["citations"] or []] if shown else [],
            usage=row["usage"],
            model=row["model"],
        )
