"""Step generate of AnswerQuestion: from passages to a streamed, cited and checked answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.access import Actor
from schemas.answers import AnswerRequest, Citation
from schemas.errors import PermanentFailure
from schemas.passages import Passage, SpaceStatistics
from schemas.runs import RunEventDraft
from schemas.settings import AnswerSettings
from services.answers.extractive import compose, quoted_citations, render
from services.answers.model_answer import ModelAnswer
from services.answers.no_evidence import no_evidence_text
from services.answers.retrieving import STEP as RETRIEVE_STEP
from services.answers.retrieving import AnswerWork, Retrieving
from services.events.token_writer import TokenWriter
from services.gateways.chat_model import ChatModel
from services.gateways.model_names import EXTRACTIVE
from services.stores import (
    answers_store,
    documents_store,
    live_chunks,
    run_event_log,
    runs_store,
    scrub_store,
    usage_store,
)
from services.stores.database import Database

STEP = "generate"
ChatModelFactory = Callable[[str], ChatModel]
Failpoint = Callable[[str], None]


@dataclass(frozen=True)
class Draft:
    """An answer before it is written down."""

    text: str
    answered: bool
    citations: Sequence[Citation]
    usage: dict[str, Any]


@dataclass(frozen=True)
class _Asked:
    """`stored`: this step's result of an earlier attempt. `replaced`: a readable document has another live version now than
    its passage."""

    request: AnswerRequest
    user: str
    model: str
    passages: list[Passage]
    replaced: bool
    statistics: SpaceStatistics
    stored: dict[str, int] | None


class Generating:
    """One attempt holds the pen; what it streams is what it stores, but for marks added by the checks."""

    def __init__(
        self,
        database: Database,
        retrieving: Retrieving,
        chat_model: ChatModelFactory,
        settings: AnswerSettings,
        failpoint: Failpoint,
    ) -> None:
        self._database = database
        self._retrieving = retrieving
        self._chat_model = chat_model
        self._settings = settings
        self._failpoint = failpoint

    async def run(self, work: AnswerWork, attempt: str) -> dict[str, int]:
        """Counts: citations, answered. A result that stands already is not made again."""
        writer = TokenWriter(
            self._database,
            work.tenant,
            work.run_id,
            step=STEP,
            attempt=attempt,
            rows_per_s=self._settings.token_rows_per_s,
        )
        asked = await self._begin(work, writer)
        if asked.replaced:  # by a version that readers see now: an answer comes from that one, not from none
            await self._retrieving.again(work)
            asked = await self._begin(work, writer)
        if asked.stored is not None:
            return asked.stored
        draft = await self._draft(asked, writer)
        await writer.flush()
        return await self._store(work, asked, draft, attempt)

    async def _begin(self, work: AnswerWork, writer: TokenWriter) -> _Asked:
        """Everything an answer is made from, and the pen, in one transaction: the first word waits for it.

        Passages are looked at again at prompt time: what may not be read any more, or was replaced, does not reach a model.
        """
        async with self._database.begin(work.tenant) as transaction:
            stored = await runs_store.step_result(transaction, work.run_id, STEP)
            row = await answers_store.get(transaction, work.answer_id)
            if row is None:
                raise PermanentFailure("corrupt", "The question's row is not there any more")
            passages = [Passage.model_validate(each) for each in row["passages"] or []]
            actor = Actor(tenant=work.tenant, user=row["actor_user"], key=row["actor_key"])
            live = await live_chunks.live_versions(transaction, actor, {each.document_id for each in passages})
            retrieved = await runs_store.step_result(transaction, work.run_id, RETRIEVE_STEP)
            if stored is None:
                await writer.take_pen(transaction)
        rarity = (retrieved or {"rarity": {"chunks": 0, "term_counts": {}}})["rarity"]
        return _Asked(
            request=AnswerRequest.model_validate(row["request"]),
            user=row["actor_user"],
            model=row["model"],
            passages=[each for each in passages if live.get(each.document_id) == each.document_version],
            replaced=stored is None
            and any(live.get(each.document_id, each.document_version) != each.document_version for each in passages),
            statistics=SpaceStatistics(mean_vector=[], **rarity),
            stored=dict(stored) if stored is not None else None,
        )

    async def _draft(self, asked: _Asked, writer: TokenWriter) -> Draft:
        request, passages = asked.request, asked.passages
        if not any(passage.n for passage in passages):
            text = no_evidence_text(request.question)
            await writer.write(text)
            return Draft(text, answered=False, citations=[], usage=_no_usage())
        if asked.model == EXTRACTIVE:
            return await self._quote(request.question, passages, asked.statistics, writer)
        # a provider's SDK takes seconds to import: on the event loop that would stop the heartbeat of every activity
        chat_model = await asyncio.to_thread(self._chat_model, asked.model)
        answer = ModelAnswer(chat_model, self._settings, self._failpoint)
        written = await answer.write(request, passages, writer)
        return Draft(written.text, answered=written.answered, citations=written.citations, usage=written.usage)

    async def _quote(
        self, question: str, passages: list[Passage], statistics: SpaceStatistics, writer: TokenWriter
    ) -> Draft:
        sentences = compose(question, passages, statistics=statistics if statistics.chunks else None)
        text = render(question, sentences)
        for number, paragraph in enumerate(text.split("\n\n")):
            await writer.write(paragraph if number == 0 else f"\n\n{paragraph}")
            self._failpoint("generate.mid_stream")
        return Draft(text, answered=True, citations=quoted_citations(sentences, passages), usage=_no_usage())

    async def _store(self, work: AnswerWork, asked: _Asked, draft: Draft, attempt: str) -> dict[str, int]:
        """Answer, step result and the events that replace the streamed text: one transaction, fenced by the pen."""
        counts = {"citations": len(draft.citations), "answered": int(draft.answered)}
        citations = [citation.model_dump() for citation in draft.citations]
        events = [
            RunEventDraft(type="answer.text", data={"text": draft.text}),
            RunEventDraft(type="citations", data=citations),
            RunEventDraft(type="usage", data=draft.usage),
        ]
        async with self._database.begin(work.tenant) as transaction:
            await documents_store.hold_sources(transaction, [passage.document_id for passage in asked.passages])
            await run_event_log.append(transaction, work.run_id, events, step=STEP, attempt=attempt)
            await answers_store.store_result(
                transaction,
                work.answer_id,
                answer=draft.text,
                answered=draft.answered,
                citations=draft.citations,
                usage=draft.usage,
            )
            await runs_store.store_step(transaction, work.run_id, STEP, counts)
            if draft.usage["input_tokens"] or draft.usage["output_tokens"]:
                used = {name: draft.usage[name] for name in ("input_tokens", "output_tokens", "cost")}
                await usage_store.add(
                    transaction,
                    run_id=work.run_id,
                    step=STEP,
                    user=asked.user,
                    kind="answer",
                    model=asked.model,
                    **used,
                )
            await scrub_store.withhold_if_removed(transaction, work.record)
        return counts


def _no_usage() -> dict[str, Any]:
    return {"input_tokens": 0, "output_tokens": 0, "cost": 0}
