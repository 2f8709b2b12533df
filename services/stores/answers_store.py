"""Answers: the question as asked, the passages it was given, and what came of it. All of it is rows, none of it events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from schemas.answers import Citation
from schemas.passages import Passage
from services.stores.database import Row, Transaction
from services.stores.tables.runs import answers, runs, sources


async def create(
    transaction: Transaction, answer_id: str, run_id: str, user: str, request: dict[str, Any], model: str
) -> None:
    row = {
        "id": answer_id,
        "run_id": run_id,
        "user_id": user,
        "question": request["question"],
        "request": request,
        "model": model,
        "created_at": transaction.now,
    }
    await transaction.execute(insert(answers).values(**row))


async def get(transaction: Transaction, answer_id: str) -> Row | None:
    """The answer with its run's state and cancel, by the answer's id."""
    statement = (
        select(answers, runs.c.state, runs.c.actor_user, runs.c.actor_key)
        .join(runs, runs.c.id == answers.c.run_id)
        .where(answers.c.id == answer_id)
    )
    return await transaction.one_or_none(statement)


async def store_passages(transaction: Transaction, answer_id: str, passages: Sequence[Passage]) -> None:
    untitled = {"duplicates": {"__all__": {"title"}}}  # a duplicate is no source: its removal would not come by here
    dumped = [passage.model_dump(mode="json", exclude=untitled) for passage in passages]
    await transaction.execute(update(answers).where(answers.c.id == answer_id).values(passages=dumped))


async def store_result(
    transaction: Transaction,
    answer_id: str,
    *,
    answer: str,
    answered: bool,
    citations: Sequence[Citation],
    usage: dict[str, Any],
) -> None:
    """The answer, and no longer the conversation that it was asked in: that may quote documents which are not its sources."""
    values = {
        "request": answers.c.request.op("-")("conversation"),
        "answer": answer,
        "answered": answered,
        "citations": [citation.model_dump() for citation in citations],
        "usage": usage,
    }
    await transaction.execute(update(answers).where(answers.c.id == answer_id).values(**values))


async def record_sources(
    transaction: Transaction, records: Sequence[str], documents: Sequence[tuple[str, int]]
) -> None:
    """Which document versions a record's text comes from: whoever may not read one of them gets the record without text."""
    rows = [
        {"record": record, "document_id": document, "version": version}
        for record in records
        for document, version in documents
    ]
    if rows:
        await transaction.execute(upsert(sources).on_conflict_do_nothing(), rows)
