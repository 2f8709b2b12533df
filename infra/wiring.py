"""The composition root: the only place that builds engines, services and activities and hands them to each other."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from temporalio.client import Client

from activities.answer_activities import AnswerActivities
from activities.ingest_activities import IngestActivities
from activities.removal_activities import RemovalActivities
from activities.run_activities import RunActivities
from activities.step_runner import StepRunner
from infra.agent_wiring import StartLocally, agent_activities, build_registry, decision_links, sandboxes_at
from schemas.settings import Settings
from schemas.workflow_contracts import INGEST_QUEUE, INTERACTIVE_QUEUE
from services.access.identity import Identity
from services.agents.agents import Agents
from services.agents.approvals import Approvals
from services.agents.artifacts import Artifacts
from services.agents.memories import Memories
from services.agents.registry import ToolRegistry
from services.agents.sessions import Sessions
from services.agents.workspace import Connect
from services.answers.asking import Asking
from services.answers.generating import Generating
from services.answers.retrieving import Retrieving
from services.container import EngineProbe, Serving
from services.documents.parser_pool import ParserPool
from services.events.cancel_watch import CancelWatch
from services.events.delivery import OutboxDelivery
from services.events.run_event_hub import RunEventHub
from services.gateways.embedding_model import EmbeddingModel
from services.gateways.safe_fetch import SafeFetch
from services.gateways.select_chat_model import chat_models
from services.gateways.select_embedding_model import build_embedding_model
from services.gateways.temporal_gateway import TemporalGateway
from services.gateways.tracing import current_traceparent
from services.ingestion.access_refresh import AccessRefresh
from services.ingestion.chunk_stage import ChunkStage
from services.ingestion.embed_stage import EmbedStage
from services.ingestion.ending import Ending
from services.ingestion.enrich_stage import EnrichStage
from services.ingestion.fetch_stage import FetchStage
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
from services.stores.keyword_index import KeywordIndex
from services.stores.qdrant_edge_vectors import QdrantEdgeVectors
from services.stores.tantivy_keywords import TantivyKeywords
from services.stores.vector_index import VectorIndex

ActivityLists = dict[str, Sequence[Callable[..., Any]]]


@dataclass
class Engines:
    """Everything with a connection or a process behind it, opened and closed together."""

    settings: Settings
    database: Database
    blobs: BlobStore
    vectors: VectorIndex
    keywords: KeywordIndex
    model: EmbeddingModel
    parsers: ParserPool
    texts: TextPool
    fetch: SafeFetch
    temporal: TemporalGateway
    sandboxes: Connect | None

    async def open(self) -> None:
        await self.vectors.open()
        await self.keywords.open()
        await asyncio.gather(self.parsers.start(), self.texts.start())
        await self.model.start()

    async def close(self) -> None:
        await self.model.stop()
        await self.parsers.stop()
        await self.texts.stop()
        await self.keywords.close()
        await self.vectors.close()
        await self.fetch.close()
        await self.database.close()


def build_engines(
    settings: Settings,
    database_url: str,
    temporal: Client,
    data: Path,
    *,
    eager: bool,
    sandboxes: StartLocally | None = None,
) -> Engines:
    """`data` holds the embedded indexes and blobs; a URL in the settings takes the place of each."""
    return Engines(
        settings=settings,
        database=Database(database_url, give_way_s=settings.work.give_way_s),
        blobs=BlobStore.at_url(settings.blob_url) if settings.blob_url else BlobStore.at_directory(data / "blobs"),
        vectors=build_vectors(settings, data),
        keywords=build_keywords(settings, data),
        model=build_embedding_model(settings, os.environ),
        parsers=ParserPool(settings.parsing),
        texts=TextPool(settings.parsing, settings.chunking),
        fetch=SafeFetch(settings.fetch, settings.limits.upload_bytes),
        temporal=TemporalGateway(temporal, eager_start=eager),
        sandboxes=sandboxes_at(settings, os.environ, sandboxes),
    )


def build_vectors(settings: Settings, data: Path) -> VectorIndex:
    """A server's client is imported only where one is configured: it takes seconds that every start would pay."""
    if settings.qdrant_url is None:
        return QdrantEdgeVectors(data / "qdrant")
    server = import_module("services.stores.qdrant_server_vectors")
    client = server.connect_qdrant(settings.qdrant_url, _secret(settings.qdrant_api_key))
    vectors: VectorIndex = server.QdrantServerVectors(client)
    return vectors


def build_keywords(settings: Settings, data: Path) -> KeywordIndex:
    if settings.elasticsearch_url is None:
        return TantivyKeywords(data / "tantivy")
    server = import_module("services.stores.elasticsearch_keywords")
    client = server.connect_elasticsearch(settings.elasticsearch_url, _secret(settings.elasticsearch_api_key))
    keywords: KeywordIndex = server.ElasticsearchKeywords(client)
    return keywords


def _secret(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret is not None else None


@dataclass
class Services:
    """The services of a process that serves and works; routes and activities are thin around these."""

    engines: Engines
    delivery: OutboxDelivery
    cancels: CancelWatch
    hub: RunEventHub
    reception: Reception
    finding: Finding
    search: Search
    asking: Asking
    registry: ToolRegistry
    memories: Memories
    agents: Agents
    sessions: Sessions
    approvals: Approvals
    statistics: Statistics
    index_stage: IndexStage
    failpoint: Callable[[str], None]


def build_services(engines: Engines, delivery: OutboxDelivery, failpoint: Callable[[str], None]) -> Services:
    settings, database = engines.settings, engines.database
    reception = Reception(database, delivery.deliver_head, settings.limits, current_traceparent)
    recall = Recall(engines.vectors, engines.keywords, engines.model, settings.retrieval)
    finding = Finding(database, recall, engines.vectors, settings.retrieval)
    asking = Asking(database, delivery.deliver_head, settings.answers, settings.chat_model, current_traceparent)
    memories = Memories(database, engines.model, settings.agents)
    registry = build_registry(database, engines.blobs, reception, finding, engines.sandboxes, memories, settings)
    return Services(
        engines=engines,
        delivery=delivery,
        cancels=CancelWatch(database),
        hub=RunEventHub(database),
        reception=reception,
        finding=finding,
        search=Search(finding, settings.limits),
        asking=asking,
        registry=registry,
        memories=memories,
        agents=Agents(database, registry),
        sessions=Sessions(database, delivery.deliver_head, settings.agents, current_traceparent),
        approvals=Approvals(database, delivery.deliver_head, registry),
        statistics=Statistics(database, engines.keywords, engines.model),
        index_stage=IndexStage(database, engines.model, engines.vectors, engines.keywords, engines.texts),
        failpoint=failpoint,
    )


def build_activities(services: Services) -> ActivityLists:
    engines = services.engines
    basics = (engines.database, services.cancels, engines.settings.work, services.failpoint)
    runner = StepRunner(*basics)
    runs = RunActivities(engines.database, runner)
    ingest = _ingest_activities(services, runner)
    removal = _removal_activities(services, runner)
    prompt_runner = StepRunner(*basics, prompt=True)
    answer = _answer_activities(services, prompt_runner)
    agent = agent_activities(
        engines.database, engines.settings, services.registry, services.memories, prompt_runner, services.failpoint
    )
    shared: list[Callable[..., Any]] = [runs.claim, runs.show_waiting, runs.show_resumed]
    return {
        INGEST_QUEUE: [
            *shared,
            *(ingest.read, ingest.chunk, ingest.embed, ingest.publish, ingest.discard, ingest.finish),
            *(removal.close_ingests, removal.empty_indexes, removal.empty_blobs, removal.empty_rows),
            *(removal.bury_window, removal.forget_space, removal.refresh_access, removal.finish),
        ],
        INTERACTIVE_QUEUE: [
            *shared,
            *(answer.answer, answer.finish),
            *(agent.next_turn, agent.think, agent.call_tool, agent.finish, agent.fail_turn),
            *(agent.look_at_approval, agent.remind),
        ],
    }


def _ingest_activities(services: Services, runner: StepRunner) -> IngestActivities:
    engines, settings = services.engines, services.engines.settings
    database, blobs, model = engines.database, engines.blobs, engines.model
    members = MemberReception(database, services.reception)
    return IngestActivities(
        database,
        runner,
        fetch=FetchStage(database, blobs, engines.fetch),
        parse=ParseStage(database, blobs, engines.parsers, members.receive),
        chunk=ChunkStage(database, blobs, engines.texts),
        embed=EmbedStage(database, model, settings.embedding, services.failpoint),
        index=services.index_stage,
        publish=PublishStage(database, model, engines.vectors, engines.keywords),
        enrich=EnrichStage(database),
        ending=Ending(database),
    )


def _removal_activities(services: Services, runner: StepRunner) -> RemovalActivities:
    engines = services.engines
    return RemovalActivities(
        engines.database,
        runner,
        removal=Removal(engines.database, engines.blobs, engines.model, engines.vectors, engines.keywords),
        space_removal=SpaceRemoval(engines.database, services.reception),
        access_refresh=AccessRefresh(engines.database, services.index_stage),
    )


def _answer_activities(services: Services, runner: StepRunner) -> AnswerActivities:
    engines, settings = services.engines, services.engines.settings
    retrieving = Retrieving(
        engines.database, services.finding, services.statistics, engines.vectors, settings.retrieval, settings.answers
    )
    generating = Generating(
        engines.database,
        retrieving,
        chat_models(settings, os.environ, settings.answers.timeout_s),
        settings.answers,
        services.failpoint,
    )
    return AnswerActivities(engines.database, runner, retrieving=retrieving, generating=generating)


def build_serving(services: Services, probes: Sequence[EngineProbe]) -> Serving:
    engines = services.engines
    return Serving(
        settings=engines.settings,
        database=engines.database,
        hub=services.hub,
        identity=Identity.of(engines.database),
        probes=probes,
        blobs=engines.blobs,
        reception=services.reception,
        search=services.search,
        asking=services.asking,
        agents=services.agents,
        sessions=services.sessions,
        approvals=services.approvals,
        decision_links=decision_links(engines.database, services.approvals, engines.settings.agents),
        artifacts=Artifacts(engines.database, engines.blobs),
        memories=services.memories,
    )
