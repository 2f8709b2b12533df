"""`perdure rebuild`: read models from events, or indexes from Postgres; on one machine nothing else may run meanwhile."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path

from infra import migrate, wiring
from infra.local_stack import DataDir, LocalStack
from schemas.settings import Settings
from services.events.rebuild import rebuild_read_models
from services.gateways.select_embedding_model import build_embedding_model
from services.ingestion.index_repair import IndexRepair
from services.ingestion.index_stage import IndexStage
from services.ingestion.text_pool import TextPool
from services.stores.database import Database


async def rebuild(settings: Settings, path: Path, indexes: bool) -> None:
    """Takes the data directory for itself; DataDirHeld names a running `up`, which must be stopped first."""
    data_dir = DataDir(path)
    data_dir.hold(datetime.now(UTC))
    unused = {"temporal_address": "unused:1", "kafka_bootstrap": "unused:1"}
    stack = LocalStack(settings.model_copy(update=unused), data_dir)
    try:
        addresses = await stack.start()
        await asyncio.to_thread(migrate.migrate, addresses.database_url)
        database = Database(addresses.database_url)
        if indexes:
            await _rebuild_indexes(settings, database, data_dir.path)
        else:
            await rebuild_read_models(database)
            print("The read models are made anew from the events.")
        await database.close()
    finally:
        await stack.stop()
        data_dir.release()


async def _rebuild_indexes(settings: Settings, database: Database, data: Path) -> None:
    vectors, keywords = wiring.build_vectors(settings, data), wiring.build_keywords(settings, data)
    model = build_embedding_model(settings, os.environ)
    texts = TextPool(settings.parsing, settings.chunking)
    await vectors.open()
    await keywords.open()
    await texts.start()
    await model.start()
    try:
        stage = IndexStage(database, model, vectors, keywords, texts)
        count = await IndexRepair(database, stage, vectors, keywords, model).rebuild()
        print(f"Both indexes are filled anew: {count} documents.")
    finally:
        await model.stop()
        await texts.stop()
        await keywords.close()
        await vectors.close()
