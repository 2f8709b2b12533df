"""Makes the topics that Perdure writes to, where they are not there yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from kafka.errors import KafkaError

from schemas.domain_events import TOPIC_OF_STREAM
from schemas.errors import EngineDown

PARTITIONS = 4
"""What the embedded broker gives a topic that it makes by itself: an aiokafka consumer that reconnects to an empty one asks for
its topics, and thereby makes them, before we do. With the same number nothing changes for those who know the topic."""
DEAD_LETTER_SUFFIX = ".dlq"
EVENT_TOPICS: tuple[str, ...] = tuple(sorted(set(TOPIC_OF_STREAM.values())))
DEAD_LETTER_TOPICS: tuple[str, ...] = tuple(topic + DEAD_LETTER_SUFFIX for topic in EVENT_TOPICS)

_NO_ERROR, _UNKNOWN_TOPIC, _ALREADY_EXISTS = 0, 3, 36
_BROKER_DEFAULT = -1


class KafkaTopics:
    """The topics of one cluster. Blocks; raises EngineDown. Any failure closes it for good: open another one."""

    def __init__(self, bootstrap: str, timeout_s: float = 3.0) -> None:
        try:
            self._admin = KafkaAdminClient(
                bootstrap_servers=bootstrap.split(","),
                bootstrap_timeout_ms=int(timeout_s * 1000),
                request_timeout_ms=int(timeout_s * 1000),
            )
        except KafkaError as error:
            raise EngineDown("kafka", "Kafka does not answer") from error

    def create(self, topics: Mapping[str, int], configs: Mapping[str, str] | None = None) -> set[str]:
        """Makes the topics (name -> partitions) that are missing, with the cluster's own replication; those it made."""
        new = [
            NewTopic(name, partitions, _BROKER_DEFAULT, topic_configs=configs) for name, partitions in topics.items()
        ]
        made = set()
        for result in self._ask("create_topics", new, raise_errors=False)["topics"]:
            if result["error_code"] == _NO_ERROR:
                made.add(result["name"])
            elif result["error_code"] != _ALREADY_EXISTS:
                raise EngineDown("kafka", f"Kafka did not make topic {result['name']}: code {result['error_code']}")
        return made

    def topic_id(self, topic: str) -> str | None:
        """The id a topic got when it was made (KIP-516); None when there is no such topic."""
        found = self._ask("describe_topics", [topic])[0]
        if found["error_code"] == _UNKNOWN_TOPIC:
            return None
        if found["error_code"] != _NO_ERROR:
            raise EngineDown("kafka", f"Kafka does not describe topic {topic}: code {found['error_code']}")
        return str(found["topic_id"])

    def close(self) -> None:
        self._admin.close()

    def _ask(self, method: str, *arguments: Any, **options: Any) -> Any:
        try:
            return getattr(self._admin, method)(*arguments, **options)
        except KafkaError as error:
            self.close()
            raise EngineDown("kafka", f"Kafka does not answer ({type(error).__name__})") from error
