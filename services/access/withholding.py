"""Stored text is read again only by who may read all it came from, now (invariant 9).

What came from documents is a record (an answer, a run's events) whose sources are rows of `sources`. One source that the
reader may not read now, removed ones included, withholds the record; one with a newer live version makes it stale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from schemas.access import Actor
from schemas.runs import TEXT_EVENTS, RunEvent
from services.stores import sources_store
from services.stores.database import Transaction

WITHHELD_DATA: dict[str, Any] = {"withheld": True}


@dataclass(frozen=True)
class Verdict:
    """What may be done with a record's text."""

    withheld: bool = False
    stale: bool = False


async def of_record(transaction: Transaction, actor: Actor, *records: str) -> Verdict:
    """The verdict over the sources of all these records together (say, a run and its answer)."""
    row = await sources_store.standing(transaction, actor, records)
    return Verdict(withheld=row.unreadable > 0, stale=row.outdated > 0)


def withhold(events: Sequence[RunEvent], verdict: Verdict) -> list[RunEvent]:
    """The events as this reader may see them: a withheld one keeps its id and type and loses its data."""
    if not verdict.withheld:
        return list(events)
    return [
        event.model_copy(update={"data": WITHHELD_DATA}) if event.type in TEXT_EVENTS else event for event in events
    ]
