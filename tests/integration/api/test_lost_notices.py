"""Streams outlive what Postgres does to their connections, and notices that nobody heard."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from sqlalchemy import make_url

from schemas.runs import RunEventDraft
from services.api.app import create_app
from services.container import Serving
from services.events import run_event_hub
from services.events.run_event_hub import RunEventHub
from services.stores import run_event_log
from services.stores.database import Database
from tests.integration.api.served import open_stream, rest, serve, take
from tests.integration.api.serving import Person, person, tell

END: tuple[str, dict[str, object]] = ("run.succeeded", {})


@pytest.fixture
async def member(database: Database, container: Serving) -> Person:
    return await person(database, create_app(container))


async def ask(who: Person) -> str:
    return str((await who.http.post("/v1/answers", json={"question": "Why?"})).json()["run_id"])


async def cut_all_connections(database_url: str) -> None:
    """What a restart of Postgres does to every session."""
    plain = make_url(database_url).set(drivername="postgresql").render_as_string(hide_password=False)
    async with await psycopg.AsyncConnection.connect(plain, autocommit=True) as connection:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


async def test_an_open_stream_goes_on_after_every_connection_was_cut(
    database: Database, database_url: str, container: Serving, member: Person
) -> None:
    run = await ask(member)
    async with serve(container) as base, open_stream(base, member.key, run) as stream:
        await tell(database, "acme", run, ("token", {"text": "a"}))
        assert [each.id for each in await take(stream, 1)] == ["0.1"]
        await cut_all_connections(database_url)
        writer = Database(database_url)
        await tell(writer, "acme", run, ("token", {"text": "b"}))
        assert [each.id for each in await take(stream, 1)] == ["0.2"]
        await container.hub.listening.wait()
        await tell(writer, "acme", run, ("token", {"text": "c"}), END)
        assert [each.id for each in await rest(stream)] == ["0.3", "0.4"]
        await writer.close()


async def test_a_watcher_without_notices_polls(
    database: Database, container: Serving, member: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_event_hub, "POLL_S", 0.2)
    run = await ask(member)
    hub = RunEventHub(database)  # never started: it hears nothing
    async with hub.watch("acme", run, 0) as watcher:
        assert await hub.next_events(watcher) == []
        await tell(database, "acme", run, ("token", {"text": "a"}))
        async with asyncio.timeout(20):
            while not (found := await hub.next_events(watcher)):
                pass
        assert [event.seq for event in found] == [1]


async def test_an_event_written_while_a_watcher_was_reading_is_not_lost(
    database: Database, container: Serving, member: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The notice comes between the watcher's read and its wait; without care it would sleep until the next poll."""
    run = await ask(member)
    hub = RunEventHub(database)
    await hub.start()
    await hub.listening.wait()
    read = RunEventHub._read
    once = asyncio.Event()

    async def read_then_write(self: RunEventHub, channel: object, after: int) -> object:
        found = await read(self, channel, after)  # type: ignore[arg-type]
        if not once.is_set():
            once.set()
            heard = watcher.channel.notices
            await tell(database, "acme", run, ("token", {"text": "late"}))
            while watcher.channel.notices == heard:
                await asyncio.sleep(0.01)
        return found

    monkeypatch.setattr(RunEventHub, "_read", read_then_write)
    async with asyncio.timeout(run_event_hub.POLL_S / 2), hub.watch("acme", run, 0) as watcher:
        found = await hub.next_events(watcher)
        while not found:
            found = await hub.next_events(watcher)
        assert [event.data for event in found] == [{"text": "late"}]
    await hub.stop()


async def test_one_read_serves_all_watchers_of_a_run(
    database: Database, container: Serving, member: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await ask(member)
    hub = RunEventHub(database)
    await hub.start()
    await hub.listening.wait()
    reads = 0
    after = run_event_log.after

    async def counted(*arguments: object, **options: object) -> object:
        nonlocal reads
        reads += 1
        return await after(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(run_event_log, "after", counted)

    async def watch() -> list[int]:
        seen: list[int] = []
        async with hub.watch("acme", run, 0) as watcher:
            while len(seen) < 20:
                seen += [event.seq for event in await hub.next_events(watcher)]
        return seen

    watchers = [asyncio.create_task(watch()) for _ in range(50)]
    while hub.watchers < 50 or any(watcher.channel.newest is None for watcher in hub._channels[run].watchers):
        await asyncio.sleep(0.01)
    for number in range(20):
        async with database.begin("acme") as transaction:
            await run_event_log.append(transaction, run, [RunEventDraft(type="token", data={"n": number})])
    assert await asyncio.gather(*watchers) == [list(range(1, 21))] * 50
    assert reads <= 50 + 2 * 20  # one each to begin with, then about one per notice: not 50 per notice
    await hub.stop()
