"""Puts a `World` together, and the fixtures that tests take it from."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest_asyncio

from schemas.settings import ChunkingSettings, EmbeddingSettings, ParsingSettings, Settings
from services.access.identity import Identity
from services.answers.asking import Asking
from services.answers.generating import Generating
from services.answers.retrieving import Retrieving
from services.documents.parser_pool import ParserPool
from services.gateways.local_embedding import LocalEmbedding
from services.gateways.safe_fetch import SafeFetch
from services.gateways.select_chat_model import chat_models
from services.ingestion.access_refresh import AccessRefresh
from services.ingestion.chunk_stage import ChunkStage
from services.ingestion.embed_stage import EmbedStage
from services.ingestion.ending import Ending
from services.ingestion.enrich_stage import EnrichStage
from services.ingestion.fetch_stage import FetchStage
from services.ingestion.index_repair import IndexRepair
from services.ingestion.index_stage import IndexStage
from services.ingestion.member_reception import MemberReception
from services.ingestion.parse_stage import ParseStage
from services.ingestion.publish_stage import PublishStage
from services.ingestion.reception import Reception
from services.ingestion.removal import Removal
from services.ingestion.space_removal import SpaceRemoval
from services.ingestion.text_pool import TextPool
from services.retrieval.finding import Finding
from services.retrieval.recall import Recall
from services.retrieval.search import Search
from services.retrieval.statistics import Statistics
from services.stores.blob_store import BlobStore
from services.stores.database import Database
from tests.integration.gateways.model_folder import FOLDER
from tests.world.builders import World
from tests.world.embedding_edge import CountedEmbedding, RememberedEmbedding
from tests.world.index_edges import HookedKeywords, HookedVectors
from tests.world.work_off import WorkOff


@dataclass(frozen=True)
class Children:
    """The processes that read documents."""

    parsers: ParserPool
    texts: TextPool


async def _leave_it_queued(destination: str, stream: str) -> None:
    """No Temporal here: `WorkOff` looks for queued runs itself."""


def build_world(
    database: Database, folder: Path, remembered: RememberedEmbedding, children: Children, settings: Settings
) -> World:
    """Put together as `infra/wiring.py` does, with the stages called straight instead of by activities."""
    blobs = BlobStore.at_directory(folder / "blobs")
    vectors, keywords = HookedVectors(folder / "qdrant"), HookedKeywords(folder / "tantivy")
    model = CountedEmbedding(remembered)
    reception = Reception(database, _leave_it_queued, settings.limits, lambda: None)
    members = MemberReception(database, reception)
    finding = Finding(database, Recall(vectors, keywords, model, settings.retrieval), vectors, settings.retrieval)
    statistics = Statistics(database, keywords, model)
    index = IndexStage(database, model, vectors, keywords, children.texts)
    retrieving = Retrieving(database, finding, statistics, vectors, settings.retrieval, settings.answers)
    work = WorkOff(
        database=database,
        identity=Identity.of(database),
        fetch=FetchStage(database, blobs, SafeFetch(settings.fetch, settings.limits.upload_bytes)),
        parse=ParseStage(database, blobs, children.parsers, members.receive),
        chunk=ChunkStage(database, blobs, children.texts),
        embed=EmbedStage(database, model, settings.embedding, _no_failpoint),
        index=index,
        publishing=PublishStage(database, model, vectors, keywords),
        enrich=EnrichStage(database),
        ending=Ending(database),
        removal=Removal(database, blobs, model, vectors, keywords),
        space_removal=SpaceRemoval(database, reception),
        access_refresh=AccessRefresh(database, index),
        retrieving=retrieving,
        generating=Generating(
            database,
            retrieving,
            chat_models(settings, os.environ, settings.answers.timeout_s),
            settings.answers,
            _no_failpoint,
        ),
    )
    return World(
        settings=settings,
        database=database,
        blobs=blobs,
        vectors=vectors,
        keywords=keywords,
        model=model,
        reception=reception,
        finding=finding,
        searching=Search(finding, settings.limits),
        asking=Asking(database, _leave_it_queued, settings.answers, settings.chat_model, lambda: None),
        repair=IndexRepair(database, index, vectors, keywords, model),
        work=work,
        members=members,
        statistics=statistics,
    )


def _no_failpoint(name: str) -> None:
    """Nothing is killed here."""


@pytest_asyncio.fixture(name="embedding", scope="session", loop_scope="session")
async def embedding_fixture() -> AsyncIterator[RememberedEmbedding]:
    model = LocalEmbedding(FOLDER, EmbeddingSettings(niceness=0))
    await model.start()
    yield RememberedEmbedding(model)
    await model.stop()


@pytest_asyncio.fixture(name="children", scope="session", loop_scope="session")
async def children_fixture() -> AsyncIterator[Children]:
    limits = ParsingSettings(niceness=0)
    children = Children(ParserPool(limits), TextPool(limits, ChunkingSettings()))
    await asyncio.gather(children.parsers.start(), children.texts.start())
    yield children
    await children.parsers.stop()
    await children.texts.stop()


@asynccontextmanager
async def opened_world(
    database_url: str, folder: Path, remembered: RememberedEmbedding, children: Children
) -> AsyncIterator[World]:
    database = Database(database_url)
    world = build_world(database, folder, remembered, children, Settings())
    await world.vectors.open()
    await world.keywords.open()
    await world.statistics.prepare()
    world.model.asked.clear()
    world.root = await world.person("admin")
    yield world
    await world.keywords.close()
    await world.vectors.close()
    await database.close()


@pytest_asyncio.fixture(name="world", loop_scope="session")
async def world_fixture(
    database_url: str, tmp_path: Path, embedding: RememberedEmbedding, children: Children
) -> AsyncIterator[World]:
    """Tests that take it run on the session's event loop: `pytestmark = pytest.mark.asyncio(loop_scope="session")`."""
    async with opened_world(database_url, tmp_path, embedding, children) as world:
        yield world
