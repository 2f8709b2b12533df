"""Reads a topic from where its group left off up to its present end, once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.errors import KafkaError

from schemas.errors import EngineDown

POLL_MS = 500
BATCH = 200
MOST_EMPTY_POLLS = 20


class KafkaReader:
    """Takes all partitions for itself; the group only remembers how far it came. Blocks; raises EngineDown."""

    def __init__(self, bootstrap: str, topic: str, group: str, timeout_s: float = 4.0) -> None:
        try:
            self._consumer: Any = KafkaConsumer(
                bootstrap_servers=bootstrap.split(","),
                group_id=group,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                bootstrap_timeout_ms=int(timeout_s * 1000),
                request_timeout_ms=int(timeout_s * 1000),
                fetch_max_wait_ms=100,
                session_timeout_ms=int(timeout_s * 500),
                heartbeat_interval_ms=int(timeout_s * 100),
                allow_auto_create_topics=False,
                metrics_enabled=False,
            )
            partitions = self._consumer.partitions_for_topic(topic) or set()
            self._partitions = [TopicPartition(topic, number) for number in sorted(partitions)]
            self._consumer.assign(self._partitions)
            self._ends = self._consumer.end_offsets(self._partitions) if self._partitions else {}
        except KafkaError as error:
            raise EngineDown("kafka", f"Kafka does not answer ({type(error).__name__})") from error

    def batches(self) -> Iterator[Sequence[Any]]:
        """Records (kafka.consumer.fetcher.ConsumerRecord) in the order of each partition, until the end it had at first."""
        empty = 0
        try:
            while self._unread():
                found = self._consumer.poll(timeout_ms=POLL_MS, max_records=BATCH)
                batch = [record for records in found.values() for record in records]
                empty = 0 if batch else empty + 1
                if empty > MOST_EMPTY_POLLS:
                    raise EngineDown("kafka", "Kafka does not give the records it says it has")
                if batch:
                    yield batch
        except KafkaError as error:
            raise EngineDown("kafka", f"Kafka does not answer ({type(error).__name__})") from error

    def commit(self) -> None:
        """What was yielded so far is not read again by this group."""
        try:
            offsets = {each: OffsetAndMetadata(self._consumer.position(each), "", -1) for each in self._partitions}
            self._consumer.commit(offsets)
        except KafkaError as error:
            raise EngineDown("kafka", f"Kafka did not take the offsets ({type(error).__name__})") from error

    def close(self) -> None:
        self._consumer.close(autocommit=False)

    def _unread(self) -> bool:
        return any(self._consumer.position(each) < self._ends[each] for each in self._partitions)
