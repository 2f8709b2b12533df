"""One record on its way to Kafka."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KafkaRecord:
    """`key` decides the partition, so records with one key keep their order."""

    topic: str
    key: bytes | None
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()
