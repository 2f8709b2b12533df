"""From committed to Kafka: once, in order per stream, whatever dies in between."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from services.events.delivery import OutboxDelivery
from services.gateways.kafka_marker import KafkaMarker
from services.gateways.kafka_publisher import KafkaPublisher
from services.gateways.kafka_record import KafkaRecord
from services.stores import consumers_store
from services.stores.database import Database
from tests.integration.events import facts
from tests.integration.events.broker import Broker
from tests.integration.events.facts import ACCESS_TOPIC, NoTemporal


async def everything_delivered(database: Database) -> bool:
    return await facts.undelivered(database) == 0


async def test_two_relays_neither_double_nor_reorder(
    database: Database, broker: Broker, publisher: KafkaPublisher, marker: KafkaMarker
) -> None:
    streams = [facts.new_space() for _ in range(10)]
    other, other_marker = KafkaPublisher(broker.bootstrap), KafkaMarker(broker.bootstrap)
    async with facts.relaying(database, publisher, marker), facts.relaying(database, other, other_marker):
        await asyncio.gather(*(facts.write(database, stream, 12) for stream in streams))
        await facts.until(lambda: everything_delivered(database))
    assert await asyncio.to_thread(broker.versions, ACCESS_TOPIC) == {stream: list(range(1, 13)) for stream in streams}
    await other_marker.close()
    await other.close()


async def test_a_record_is_a_cloud_event_keyed_by_its_stream(
    database: Database, broker: Broker, publisher: KafkaPublisher
) -> None:
    stream = facts.new_space()
    await facts.write(database, stream)
    await OutboxDelivery(database, NoTemporal(), publisher).deliver_batch(ACCESS_TOPIC)
    ((key, value, headers),) = await asyncio.to_thread(broker.records, ACCESS_TOPIC)
    assert key == stream.encode()
    assert headers["content-type"].startswith(b"application/cloudevents+json")
    assert b'"id":"%s/1"' % stream.encode() in (value or b"")


async def test_a_relay_killed_between_send_and_mark_sends_again(
    database: Database, broker: Broker, publisher: KafkaPublisher
) -> None:
    class DiesAfterSending:
        async def publish(self, records: Sequence[KafkaRecord]) -> list[str | None]:
            await publisher.publish(records)
            raise asyncio.CancelledError

    stream = facts.new_space()
    await facts.write(database, stream, 3)
    dying = asyncio.ensure_future(
        OutboxDelivery(database, NoTemporal(), DiesAfterSending()).deliver_batch(ACCESS_TOPIC)
    )
    await asyncio.wait([dying])
    assert dying.cancelled()
    await OutboxDelivery(database, NoTemporal(), publisher).deliver_batch(ACCESS_TOPIC)
    assert await asyncio.to_thread(broker.versions, ACCESS_TOPIC) == {stream: [1, 2, 3, 1, 2, 3]}
    unsent = await facts.rows(database, "SELECT id FROM outbox WHERE sent_at IS NULL")
    assert not unsent


async def test_what_a_stream_could_not_send_holds_back_the_rest_of_it_alone(database: Database) -> None:
    torn, whole = facts.new_space(), facts.new_space()

    class LosesTheSecondOfOne:
        async def publish(self, records: Sequence[KafkaRecord]) -> list[str | None]:
            of_torn = [number for number, record in enumerate(records) if record.key == torn.encode()]
            return ["KafkaTimeoutError" if number == of_torn[1] else None for number in range(len(records))]

    for _ in range(3):
        await facts.write(database, torn)
        await facts.write(database, whole)
    await asyncio.gather(
        OutboxDelivery(database, NoTemporal(), LosesTheSecondOfOne()).deliver_batch(ACCESS_TOPIC),
        return_exceptions=True,
    )
    sent = await facts.rows(
        database, "SELECT stream, stream_version FROM outbox WHERE sent_at IS NOT NULL ORDER BY stream, id"
    )
    assert [row["stream_version"] for row in sent if row["stream"] == torn] == [1]
    assert [row["stream_version"] for row in sent if row["stream"] == whole] == [1, 2, 3]


async def test_a_broker_that_is_away_while_documents_are_saved_gets_every_event_in_order(
    database: Database, broker: Broker, publisher: KafkaPublisher, marker: KafkaMarker
) -> None:
    streams = [facts.new_space() for _ in range(20)]
    async with facts.relaying(database, publisher, marker):
        await facts.write(database, facts.new_space())
        await facts.until(lambda: everything_delivered(database))
        broker.kill()
        async with asyncio.timeout(20):  # saving does not wait for Kafka
            await asyncio.gather(*(facts.write(database, stream, 3) for stream in streams))
        assert await facts.undelivered(database) == 60
        await broker.start()
        await facts.until(lambda: everything_delivered(database))
    arrived = await asyncio.to_thread(broker.versions, ACCESS_TOPIC)
    assert {stream: arrived.get(stream) for stream in streams} == {stream: [1, 2, 3] for stream in streams}


async def test_a_broker_that_comes_back_empty_gets_again_what_nobody_has_consumed(
    database: Database, broker: Broker, publisher: KafkaPublisher, marker: KafkaMarker
) -> None:
    async with database.every_tenant("a consumer is registered for all tenants") as transaction:
        await consumers_store.register(transaction, "slow", [ACCESS_TOPIC])
    had, owed = facts.new_space(), facts.new_space()
    never = facts.QUICK.model_copy(update={"resend_after_s": 3600.0})
    async with facts.relaying(database, publisher, marker, never):
        await facts.write(database, had, 2)
        await facts.write(database, owed, 2)
        async with database.begin(facts.TENANT) as transaction:
            await consumers_store.mark_consumed(transaction, "slow", [(had, 1), (had, 2)])
        await facts.until(lambda: _undelivered_are(database, 2))
        broker.kill()
        await broker.start()
        await facts.until(lambda: _has(broker, owed))
    assert await asyncio.to_thread(broker.versions, ACCESS_TOPIC) == {owed: [1, 2]}


async def test_what_is_not_consumed_in_time_is_sent_again_from_the_first_missing(
    database: Database, broker: Broker, publisher: KafkaPublisher, marker: KafkaMarker
) -> None:
    async with database.every_tenant("a consumer is registered for all tenants") as transaction:
        await consumers_store.register(transaction, "slow", [ACCESS_TOPIC])
    stream = facts.new_space()
    await facts.write(database, stream, 3)
    async with database.begin(facts.TENANT) as transaction:
        await consumers_store.mark_consumed(transaction, "slow", [(stream, 1)])
    soon = facts.QUICK.model_copy(update={"resend_after_s": 0.2})
    async with facts.relaying(database, publisher, marker, soon):
        async with asyncio.timeout(20):
            while (sent := (await asyncio.to_thread(broker.versions, ACCESS_TOPIC)).get(stream, [])) == []:
                await asyncio.sleep(0.05)
            while (sent := (await asyncio.to_thread(broker.versions, ACCESS_TOPIC))[stream])[3:5] != [2, 3]:
                assert sent[:3] == [1, 2, 3]
                await asyncio.sleep(0.05)


async def test_the_relay_goes_on_after_postgres_ended_its_connections(
    database: Database, broker: Broker, publisher: KafkaPublisher, marker: KafkaMarker
) -> None:
    stream = facts.new_space()
    async with facts.relaying(database, publisher, marker):
        await facts.write(database, stream)
        await facts.until(lambda: everything_delivered(database))
        own = "datname = current_database() AND pid <> pg_backend_pid()"
        await facts.rows(database, f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE {own}")
        await facts.until(lambda: _written(database, stream))
        await facts.until(lambda: everything_delivered(database))
    assert await asyncio.to_thread(broker.versions, ACCESS_TOPIC) == {stream: [1, 2]}


async def _written(database: Database, stream: str) -> bool:
    """The pool may hand out a connection that has just been ended: then nothing was written, and it is tried again."""
    (failure,) = await asyncio.gather(facts.write(database, stream), return_exceptions=True)
    return failure is None


async def _undelivered_are(database: Database, count: int) -> bool:
    return await facts.undelivered(database) == count


async def _has(broker: Broker, stream: str) -> bool:
    return len((await asyncio.to_thread(broker.versions, ACCESS_TOPIC)).get(stream, [])) >= 2
