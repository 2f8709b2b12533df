"""`perdure events redrive`: against the configured Kafka, or the embedded broker of a running `up`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from infra.load_settings import BadSettings
from schemas.settings import Settings
from services.events.redrive import redrive
from services.gateways.kafka_publisher import KafkaPublisher


async def redrive_events(settings: Settings, data_dir: Path) -> None:
    bootstrap = settings.kafka_bootstrap
    if bootstrap is None:
        bootstrap = await asyncio.to_thread(_of_running_up, data_dir)
    publisher = KafkaPublisher(bootstrap)
    try:
        sent = await redrive(bootstrap, publisher)
    finally:
        await publisher.close()
    for topic, count in sent.items():
        print(f"{topic}: {count} sent again")


def _of_running_up(data_dir: Path) -> str:
    try:
        return str(json.loads((data_dir / "run" / "up.json").read_text(encoding="utf-8"))["kafka_bootstrap"])
    except (OSError, ValueError, KeyError):
        raise BadSettings(f"no Perdure runs on {data_dir}: start it, or set PERDURE_KAFKA_BOOTSTRAP") from None
