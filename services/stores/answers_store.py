"""Answers: the question as asked, the passages it was given, and what came of it. All of it is rows, none of it events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ARRAY, Integer, Text, bindparam, insert, literal_column, select, text, update
from sqlalchemy.dialects.postgresql import JSONB

from schemas.answers import Citation
from schemas.passages import Passage
from services.stores.database import Row, Transaction
from services.stores.prepared import Prepared
from services.stores.tables.runs import answers, runs

_GET = Prepared(
    select(answers, runs.c.state, runs.c.actor_user, runs.c.actor_key)
    .join(runs, runs.c.id == answers.c.run_id)
    .where(answers.c.id == bindparam("answer"))
)
_CREATE = Prepared(
    insert(answers).values(
        request=bindparam("request", type_=JSONB),
        **{name: bindparam(name) for name in ("id", "run_id", "user_id", "question", "model", "created_at")},
    )
)
_STORE_PASSAGES = Prepared(
    update(answers).where(answers.c.id == bindparam("answer")).values(passages=bindparam("dumped", type_=JSONB))
)
_STORE_RESULT = Prepared(
    update(answers)
    .where(answers.c.id == bindparam("of"))
    .values(
        request=answers.c.request.op("-")(literal_column("'conversation'")),
        answer=bindparam("said"),
        answered=bindparam("found"),
        citations=bindparam("cited", type_=JSONB),
        usage=bindparam("used", type_=JSONB),
    )
)
_RECORD_SOURCES = Prepared(
    text(
        """
        INSERT INTO sources (record, document_id, version)
        SELECT record, used.document_id, used.version
        FROM unnest(:records) AS record, unnest(:documents, :versions) AS used(document_id, version)
        ON CONFLICT DO NOTHING
        """
    ).bindparams(
        bindparam("records", type_=ARRAY(Text)),
        bindparam("documents", type_=ARRAY(Text)),
        bindparam("versions", type_=ARRAY(Integer)),
    )
)


async def create(
    transaction: Transaction, answer_id: str, run_id: str, user: str, request: dict[str, Any], model: str
) -> None:
    row = {"id": answer_id, "run_id": run_id, "user_id": user, "question": request["question"], "request": request}
    await transaction.run(_CREATE, {**row, "model": model, "created_at": transaction.now})


async def get(transaction: Transaction, answer_id: str) -> Row | None:
    """The answer with its run's state and cancel, by the answer's id."""
    return await transaction.one_or_none(_GET, {"answer": answer_id})


async def store_passages(transaction: Transaction, answer_id: str, passages: Sequence[Passage]) -> None:
    untitled = {"duplicates": {"__all__": {"title"}}}  # a duplicate is no source: its removal would not come by here
    dumped = [passage.model_dump(mode="json", exclude=untitled) for passage in passages]
    await transaction.run(_STORE_PASSAGES, {"answer": answer_id, "dumped": dumped})


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
        "of": answer_id,
        "said": answer,
        "found": answered,
        "cited": [citation.model_dump() for citation in citations],
        "used": usage,
    }
    await transaction.run(_STORE_RESULT, values)


async def record_sources(
    transaction: Transaction, records: Sequence[str], documents: Sequence[tuple[str, int]]
) -> None:
    """Which document versions a record's text comes from: whoever may not read one of them gets the record without text."""
    if records and documents:
        used = {"documents": [document for document, _ in documents], "versions": [version for _, version in documents]}
        await transaction.run(_RECORD_SOURCES, {"records": list(records), **used})
