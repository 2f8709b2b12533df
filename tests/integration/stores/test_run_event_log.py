"""A run's stream under many writers: no gap, no double, and no word of an attempt that has lost the pen."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from sqlalchemy import text

from schemas.runs import RunEvent, RunEventDraft
from services.stores import run_event_log
from services.stores.database import Database
from services.stores.run_event_log import PenTaken

TENANT = "acme"
RUN, STEP = "run-1", "generate"
WAITING_FOR_A_LOCK = text(
    "SELECT count(*) FROM pg_stat_get_activity(NULL) AS a JOIN pg_database AS d ON d.oid = a.datid "
    "WHERE d.datname = current_database() AND a.wait_event_type = 'Lock'"
)


async def say(database: Database, word: str, attempt: str | None = None) -> int:
    draft = RunEventDraft(type="token", data={"text": word})
    async with database.begin(TENANT) as transaction:
        return await run_event_log.append(transaction, RUN, [draft], step=STEP, attempt=attempt)


async def take(database: Database, attempt: str) -> bool:
    async with database.begin(TENANT) as transaction:
        return await run_event_log.take_pen(transaction, RUN, STEP, attempt)


async def read(database: Database) -> list[RunEvent]:
    async with database.begin(TENANT) as transaction:
        return await run_event_log.after(transaction, RUN, 0)


async def somebody_waits(database: Database) -> bool:
    """In a transaction of its own: within one, Postgres shows the sessions there were at its first look."""
    async with database.begin(TENANT) as transaction:
        return bool(await transaction.scalar(WAITING_FOR_A_LOCK))


def shown(events: list[RunEvent]) -> list[str]:
    """What a reader has who forgets all at each `answer.reset`."""
    words: list[str] = []
    for event in events:
        words = [] if event.type == "answer.reset" else [*words, event.data["text"]]
    return words


async def test_places_are_given_in_order_and_several_at_once(database: Database) -> None:
    drafts = [RunEventDraft(type="token", data={"text": word}) for word in ("one", "two")]
    async with database.begin(TENANT) as transaction:
        assert await run_event_log.append(transaction, RUN, drafts) == 2
        assert await run_event_log.append(transaction, RUN, drafts) == 4
        assert await run_event_log.append(transaction, RUN, []) == 0
    assert [(event.seq, event.data["text"]) for event in await read(database)] == [
        (1, "one"), (2, "two"), (3, "one"), (4, "two"),
    ]  # fmt: skip


async def test_a_later_attempt_makes_readers_forget_only_if_there_was_something_to_forget(database: Database) -> None:
    assert not await take(database, "first")
    assert not await take(database, "second")
    await say(database, "lost", "second")
    assert await take(database, "third")
    assert not await take(database, "fourth")
    await say(database, "kept", "fourth")
    events = await read(database)
    assert [(event.seq, event.epoch, event.type) for event in events] == [
        (1, 0, "token"), (2, 1, "answer.reset"), (3, 1, "token"),
    ]  # fmt: skip
    assert shown(events) == ["kept"]


async def test_without_the_pen_nothing_is_written_and_no_place_is_lost(database: Database) -> None:
    with pytest.raises(PenTaken):
        await say(database, "never had it", "first")
    await take(database, "first")
    await take(database, "second")
    with pytest.raises(PenTaken):
        await say(database, "too late", "first")
    assert await say(database, "mine", "second") == 1
    assert shown(await read(database)) == ["mine"]


async def test_a_write_that_waits_for_the_pens_change_is_refused_after_it(database: Database) -> None:
    await take(database, "first")
    async with database.begin(TENANT) as transaction:
        await run_event_log.take_pen(transaction, RUN, STEP, "second")
        late = asyncio.create_task(say(database, "too late", "first"))
        while not await somebody_waits(database):
            assert not late.done(), "it must wait for what is being decided"
            await asyncio.sleep(0.01)
    with pytest.raises(PenTaken):
        await late
    assert await read(database) == []


async def test_attempts_that_meet_leave_the_last_ones_words_alone_and_no_gap(database: Database) -> None:
    async def attempt(name: str) -> str | None:
        await take(database, name)
        for number in range(5):
            try:
                await say(database, f"{name}{number}", name)
            except PenTaken:
                return None
        return name

    async def others() -> None:
        for _ in range(10):
            await say(database, "stage")

    outcomes, _ = await asyncio.gather(asyncio.gather(*(attempt(f"a{n}") for n in range(8))), others())
    events = await read(database)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert all(earlier.epoch <= later.epoch for earlier, later in pairwise(events))
    assert len([event for event in events if event.data and event.data["text"] == "stage"]) == 10
    by_attempt = [word for word in shown(events) if word != "stage"]
    finished = [name for name in outcomes if name is not None]
    assert by_attempt in [[f"{name}{number}" for number in range(5)] for name in finished]
