"""Runs as callers read them: each by its user, ingests and removals also by the managers of their space."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, case, exists, false, func, literal, or_, select

from schemas.access import Actor
from schemas.runs import TERMINAL_EVENTS, RunView
from services.stores import runs_store
from services.stores.database import Transaction
from services.stores.prepared import Prepared
from services.stores.readable import ACTORS_KEPT, actor_is_active, any_of, readable, spaces_with_role
from services.stores.tables.documents import documents
from services.stores.tables.runs import run_events, run_streams, runs

MANAGED_KINDS = ("ingest", "remove")
UNREADABLE_DETAIL = "The document of this run is not readable with this key."


def visible_run(actor: Actor) -> ColumnElement[bool]:
    """A condition on `runs`."""
    own = and_(runs.c.actor_user == actor.user, actor_is_active(actor))
    managed = and_(runs.c.kind == any_of(*MANAGED_KINDS), runs.c.space_id.in_(spaces_with_role(actor, "manager")))
    return or_(own, managed)


async def get(transaction: Transaction, actor: Actor, run_id: str) -> RunView | None:
    row = await transaction.one_or_none(_one(actor), {"run_id": run_id})
    return None if row is None else _view(row)


@lru_cache(ACTORS_KEPT)
def _one(actor: Actor) -> Prepared:
    return Prepared(_select(actor).where(runs.c.id == bindparam("run_id")))


@dataclass(frozen=True)
class StreamStanding:
    """A run's stream as one reader finds it. `end_seq` is where its terminal event stands, if it has come."""

    newest_seq: int
    end_seq: int | None
    names_hidden: bool


async def standing(transaction: Transaction, actor: Actor, run_id: str) -> StreamStanding | None:
    """Null when the run is not this actor's to read, now."""
    row = await transaction.one_or_none(_standing(actor), {"run_id": run_id})
    if row is None:
        return None
    return StreamStanding(row["newest_seq"] or 0, row["end_seq"], row["names_hidden"])


@lru_cache(ACTORS_KEPT)
def _standing(actor: Actor) -> Prepared:
    newest = select(run_streams.c.seq).where(run_streams.c.run_id == runs.c.id).scalar_subquery()
    of_run = and_(run_events.c.run_id == runs.c.id, run_events.c.type == any_of(*TERMINAL_EVENTS))
    end = select(func.max(run_events.c.seq)).where(of_run).scalar_subquery()
    statement = _select(actor).add_columns(newest.label("newest_seq"), end.label("end_seq"))
    return Prepared(statement.where(runs.c.id == bindparam("run_id")))


async def newest_first(
    transaction: Transaction, actor: Actor, *, kind: str | None, state: str | None, before: str | None, limit: int
) -> list[RunView]:
    statement = _select(actor)
    if kind is not None:
        statement = statement.where(runs.c.kind == kind)
    if state is not None:
        statement = statement.where(runs.c.state == state)
    if before is not None:
        statement = statement.where(runs.c.id < before)
    return [_view(row) for row in await transaction.all(statement.order_by(runs.c.id.desc()).limit(limit))]


def _select(actor: Actor) -> Any:
    """Runs with `names_hidden`: true when the run is about a document that the actor may not read now."""
    subject_readable = exists(select(literal(1)).where(documents.c.id == runs.c.subject, readable(actor)))
    hidden = case((runs.c.kind == "ingest", ~subject_readable), else_=false())
    return select(runs, hidden.label("names_hidden")).where(visible_run(actor))


def _view(row: Any) -> RunView:
    """The detail of an ingest's error may quote its document: whoever may not read that gets the code alone."""
    view = runs_store.view(row)
    if row["names_hidden"] and view.error is not None:
        return view.model_copy(update={"error": {**view.error, "detail": UNREADABLE_DETAIL}})
    return view
