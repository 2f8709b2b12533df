"""A stack in a data directory of its own, and the questions tests ask of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from kafka import KafkaConsumer, KafkaProducer
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine
from temporalio.client import Client

from infra.local_stack import DataDir, EngineAddresses, LocalStack
from infra.local_stack.process_record import start_ticks
from schemas.settings import Settings


@dataclass
class RunningStack:
    stack: LocalStack
    addresses: EngineAddresses
    restarted: list[str] = field(default_factory=list)


@asynccontextmanager
async def running_stack(path: Path, settings: Settings = Settings()) -> AsyncIterator[RunningStack]:  # noqa: B008
    data_dir = DataDir(path)
    data_dir.hold(datetime.now(UTC))
    restarted: list[str] = []
    stack = LocalStack(settings, data_dir, on_restart=restarted.append)
    try:
        yield RunningStack(stack, await stack.start(), restarted)
    finally:
        await stack.stop()
        data_dir.release()


async def until(condition: Callable[[], bool], within_s: float = 30.0) -> None:
    """Raises TimeoutError when the condition does not come true."""
    async with asyncio.timeout(within_s):
        while True:
            if condition():
                return
            await asyncio.sleep(0.02)


def all_gone(pids: list[int]) -> bool:
    return all(start_ticks(pid) is None for pid in pids)


async def sql(addresses: EngineAddresses, *statements: str) -> list[tuple[object, ...]]:
    """Runs the statements in one transaction; the rows of the last one."""
    engine = create_async_engine(addresses.database_url)
    try:
        async with engine.begin() as connection:
            for statement in statements[:-1]:
                await connection.execute(text(statement))
            result = await connection.execute(text(statements[-1]))
            return [tuple(row) for row in result] if result.returns_rows else []
    finally:
        await engine.dispose()


async def start_workflow(addresses: EngineAddresses, workflow_id: str) -> None:
    """Accepted and kept by the server; no worker ever runs it."""
    client = await Client.connect(addresses.temporal_address)
    await client.start_workflow("Nothing", id=workflow_id, task_queue="nobody")


async def count_workflows(addresses: EngineAddresses) -> int:
    client = await Client.connect(addresses.temporal_address)
    return (await client.count_workflows("WorkflowType = 'Nothing'")).count


def send_and_receive(addresses: EngineAddresses, topic: str, value: bytes) -> bytes:
    producer = KafkaProducer(bootstrap_servers=addresses.kafka_bootstrap)
    producer.send(topic, value).get(timeout=20)
    producer.close()
    consumer = KafkaConsumer(
        topic, bootstrap_servers=addresses.kafka_bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=20_000
    )
    record = next(consumer)
    consumer.close()
    return bytes(record.value)
