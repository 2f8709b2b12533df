"""Stored text is read again only by who may read all it came from, now (invariant 9).

What came from documents is a record (an answer, a run's events) whose sources are rows of `sources`. One source that the
reader may not read now, removed ones included, withholds the record; one with a newer live version makes it stale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from schemas.access import Actor
from schemas.identifiers import run_stream
from schemas.runs import TEXT_EVENTS, RunEvent
from services.stores import sources_store
from services.stores.database import Transaction
from services.stores.run_views import UNREADABLE_DETAIL
from services.stores.sources_store import Standing

WITHHELD_DATA: dict[str, Any] = {"withheld": True}


@dataclass(frozen=True)
class Verdict:
    """What may be done with a record's text."""

    withheld: bool = False
    stale: bool = False
    names_hidden: bool = False
    """The run is about a document that the reader may not read: why it failed could quote it."""


async def of_record(transaction: Transaction, actor: Actor, *records: str) -> Verdict:
    """The verdict over the sources of all these records together."""
    return _verdict(await sources_store.standing(transaction, actor, records))


async def of_records(transaction: Transaction, actor: Actor, records: Sequence[str]) -> dict[str, Verdict]:
    """Each record's own verdict, in one query."""
    standings = await sources_store.standings(transaction, actor, records)
    return {record: _verdict(standings.get(record, sources_store.NO_SOURCES)) for record in records}


async def withheld(transaction: Transaction, actor: Actor, records: Sequence[str]) -> set[str]:
    """Those of these records that may not be read now."""
    return {record for record, verdict in (await of_records(transaction, actor, records)).items() if verdict.withheld}


async def of_run(transaction: Transaction, actor: Actor, run_id: str, *, names_hidden: bool = False) -> Verdict:
    """The verdict over a run's events, and over the answer they made: both are the record `run:<id>`."""
    return replace(await of_record(transaction, actor, run_stream(run_id)), names_hidden=names_hidden)


def _verdict(standing: Standing) -> Verdict:
    return Verdict(withheld=standing.unreadable > 0, stale=standing.outdated > 0)


def withhold(events: Sequence[RunEvent], verdict: Verdict) -> list[RunEvent]:
    """The events as this reader may see them: a withheld one keeps its id and type and loses its data."""
    return [_seen(event, verdict) for event in events]


def _seen(event: RunEvent, verdict: Verdict) -> RunEvent:
    if verdict.withheld and event.type in TEXT_EVENTS:
        return event.model_copy(update={"data": WITHHELD_DATA})
    if verdict.names_hidden and "detail" in event.data:
        return event.model_copy(update={"data": {**event.data, "detail": UNREADABLE_DETAIL}})
    return event
