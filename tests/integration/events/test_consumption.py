"""What a consumer makes of the records it gets: once each, in order, nothing lost and nothing stuck."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from schemas.domain_events import SCRUBBED_FIELDS, EventDraft
from schemas.errors import EngineDown
from services.consumers.audit_log import AuditLog
from services.consumers.consumption import Consumption
from services.events import cloud_event
from services.events.cloud_event import CloudEvent
from services.events.dead_letter import REASON, Received
from services.gateways.kafka_record import KafkaRecord
from services.gateways.kafka_topics import EVENT_TOPICS
from services.stores import event_log, scrub_store
from services.stores.database import Database, Transaction
from tests.integration.events import facts
from tests.integration.events.facts import TENANT


class DeadLetters:
    """A dead letter topic in memory, which can be away."""

    def __init__(self) -> None:
        self.records: list[KafkaRecord] = []
        self.refusals = 0

    async def publish(self, records: Sequence[KafkaRecord]) -> list[str | None]:
        if self.refusals:
            self.refusals -= 1
            raise EngineDown("kafka", "away")
        self.records += records
        return [None] * len(records)


class FailingAudit(AuditLog):
    """Cannot handle events of one type."""

    def __init__(self, cannot: str) -> None:
        self.cannot: str | None = cannot

    async def apply(self, transaction: Transaction, events: Sequence[CloudEvent]) -> None:
        if any(event.event_type == self.cannot for event in events):
            raise ValueError("this consumer cannot")
        await super().apply(transaction, events)


async def started(
    database: Database, dead: DeadLetters, consumer: AuditLog | None = None, tries: int = 2
) -> Consumption:
    consumption = Consumption(database, consumer or AuditLog(), dead, tries)
    await consumption.start()
    return consumption


async def received(database: Database, stream: str, *, redriven: bool = False) -> list[Received]:
    """The stream as Kafka would give it."""
    async with database.begin(TENANT) as transaction:
        events = await event_log.of_stream(transaction, stream)
    records = [cloud_event.record_of(event) for event in events]
    return [
        Received(record.topic, 0, offset, record.key, record.value, redriven) for offset, record in enumerate(records)
    ]


async def test_an_event_is_had_once_and_only_after_its_predecessor_in_every_order_of_arrival(
    database: Database,
) -> None:
    consumption = await started(database, DeadLetters())
    for order in itertools.permutations(range(4)):
        stream = facts.new_space()
        await facts.write(database, stream, 4)
        records = await received(database, stream)
        for number in order:
            await consumption.handle([records[number]])
        for _ in range(4):  # what was left alone comes again from the first missing one
            await consumption.handle(records)
        assert (await facts.audited(database))[stream] == [1, 2, 3, 4]
    consumed = await facts.rows(database, "SELECT count(*) AS count FROM consumed")
    assert consumed[0]["count"] == 24 * 4


async def test_a_gap_is_neither_consumed_nor_dead(database: Database) -> None:
    dead = DeadLetters()
    consumption = await started(database, dead)
    stream = facts.new_space()
    await facts.write(database, stream, 3)
    first, _, third = await received(database, stream)
    await consumption.handle([first, third])
    assert await facts.audited(database) == {stream: [1]}
    assert not dead.records


async def test_what_happened_before_a_consumer_was_registered_is_not_its_business(database: Database) -> None:
    stream = facts.new_space()
    await facts.write(database, stream, 2)
    consumption = await started(database, DeadLetters())
    await facts.write(database, stream, 2)
    await consumption.handle(await received(database, stream))
    assert await facts.audited(database) == {stream: [3, 4]}


async def test_an_event_that_cannot_be_handled_is_dead_counts_as_had_and_holds_up_nothing(database: Database) -> None:
    dead = DeadLetters()
    consumption = await started(database, dead, FailingAudit("space.created"))
    stream, other = facts.new_space(), facts.new_space()
    await facts.write(database, stream)
    async with database.begin(TENANT) as transaction:
        await event_log.append(transaction, EventDraft(stream=stream, type="space.created"))
    await facts.write(database, stream)
    await facts.write(database, other)
    records = await received(database, stream)
    await consumption.handle([*records, *await received(database, other)])
    assert await facts.audited(database) == {stream: [1, 3], other: [1]}
    (letter,) = dead.records
    assert (letter.topic, letter.value, dict(letter.headers)[REASON]) == (
        "perdure.access.dlq", records[1].value, b"ValueError",
    )  # fmt: skip
    await consumption.handle(records)
    assert len(dead.records) == 1


async def test_a_dead_letter_that_cannot_be_written_leaves_the_event_owed(database: Database) -> None:
    dead = DeadLetters()
    dead.refusals = 1
    consumption = await started(database, dead, FailingAudit("grant.given"), tries=1)
    stream = facts.new_space()
    await facts.write(database, stream)
    records = await received(database, stream)
    await consumption.handle(records)
    assert not await facts.rows(database, "SELECT stream FROM consumed")
    await consumption.handle(records)
    assert len(dead.records) == 1
    assert await facts.rows(database, "SELECT stream FROM consumed") == [{"stream": stream}]


@pytest.mark.parametrize(
    "value",
    [None, b"", b"\xff\xfe", b"[]", b"{}", b'{"specversion":"1.0"}', b"[" * 100_000],
    ids=["none", "empty", "not text", "no object", "no event", "half an event", "deep"],
)
async def test_an_undecodable_record_waits_for_the_dead_letter_topic_and_goes_there_whole(
    database: Database, value: bytes | None
) -> None:
    dead = DeadLetters()
    dead.refusals = 2
    consumption = await started(database, dead)
    stream = facts.new_space()
    await facts.write(database, stream)
    await consumption.handle([Received(EVENT_TOPICS[0], 0, 7, b"k", value), *await received(database, stream)])
    (letter,) = dead.records
    assert (letter.key, letter.value) == (b"k", value or b"")
    assert await facts.audited(database) == {stream: [1]}


async def test_a_record_may_not_speak_for_every_tenant(database: Database) -> None:
    dead = DeadLetters()
    consumption = await started(database, dead)
    stream = facts.new_space()
    await facts.write(database, stream)
    (record,) = await received(database, stream)
    forged = (record.value or b"").replace(b'"tenant":"acme"', b'"tenant":"*"')
    await consumption.handle([Received(record.topic, 0, 0, record.key, forged)])
    assert len(dead.records) == 1
    assert not await facts.audited(database)


async def test_a_redriven_event_gets_its_effect_once(database: Database) -> None:
    audit = FailingAudit("grant.given")
    consumption = await started(database, DeadLetters(), audit, tries=1)
    stream = facts.new_space()
    await facts.write(database, stream)
    await consumption.handle(await received(database, stream))
    assert not await facts.audited(database)
    audit.cannot = None
    for _ in range(2):
        await consumption.handle(await received(database, stream, redriven=True))
    assert await facts.audited(database) == {stream: [1]}


async def test_no_name_of_a_removed_document_is_left_whenever_its_events_come(database: Database) -> None:
    consumption = await started(database, DeadLetters())
    stream = "document:0190-4711"
    data = {
        "version": 1, "newest_version": 1, "space_id": "s", "title": "Payroll 2031", "external_id": "payroll.xlsx",
        "source": "upload", "readers": ["user:ada"], "owner": "ada", "tags": ["secret-tag"], "state": "received",
    }  # fmt: skip
    async with database.begin(TENANT) as transaction:
        await event_log.append(transaction, EventDraft(stream=stream, type="document.received", data=data))
    (early,) = await received(database, stream)
    async with database.begin(TENANT) as transaction:
        await event_log.scrub(transaction, [stream], SCRUBBED_FIELDS)
        await scrub_store.scrub_audit(transaction, [stream], SCRUBBED_FIELDS)
        await event_log.append(transaction, EventDraft(stream=stream, type="document.removed"))
    await consumption.handle([early])  # it was sent before the removal, with all it held then
    await consumption.handle(await received(database, stream))
    assert await facts.audited(database) == {stream: [1, 2]}
    stored = str(await facts.rows(database, "SELECT data FROM audit_log"))
    assert not [word for word in ("Payroll", "payroll", "secret-tag", "ada") if word in stored]
    assert b"ayroll" not in (early.value or b"")


async def test_events_of_several_tenants_in_one_batch_go_each_to_its_own(database: Database) -> None:
    consumption = await started(database, DeadLetters())
    ours, theirs = facts.new_space(), facts.new_space()
    await facts.write(database, ours)
    await facts.write(database, theirs, tenant="globex")
    async with database.begin("globex") as transaction:
        foreign = [cloud_event.record_of(event) for event in await event_log.of_stream(transaction, theirs)]
    batch = [Received(record.topic, 1, 0, record.key, record.value) for record in foreign]
    await consumption.handle([*await received(database, ours), *batch])
    found = await facts.rows(database, "SELECT tenant, stream FROM audit_log ORDER BY tenant")
    assert found == [{"tenant": TENANT, "stream": ours}, {"tenant": "globex", "stream": theirs}]
