"""An API over real Postgres and real services, with people in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import httpx
import numpy as np
from fastapi import FastAPI

from schemas.access import Actor
from schemas.identifiers import new_id
from schemas.identity import ApiKeyCreated, ApiKeyDraft, UserView
from schemas.runs import RunEventDraft
from schemas.search import SearchHit, SearchRequest, SearchResult
from schemas.settings import LimitSettings, Settings
from services.access import api_keys, users
from services.access.api_key import new_key
from services.access.identity import Identity
from services.agents.agents import Agents
from services.agents.approvals import Approvals
from services.agents.artifacts import Artifacts
from services.agents.decision_links import DecisionLinks
from services.agents.memories import Memories
from services.agents.registry import ToolRegistry
from services.agents.sessions import Sessions
from services.agents.tools.list_documents import ListDocumentsTool
from services.answers.asking import Asking
from services.api.app import create_app
from services.container import EngineProbe, Serving, Stream
from services.events.run_event_hub import RunEventHub
from services.gateways.embedding_model import EmbeddingModel, Vectors
from services.gateways.tracing import current_traceparent
from services.ingestion.reception import Reception
from services.stores import identity_store, run_event_log
from services.stores.blob_store import BlobStore
from services.stores.database import Database
from tests.fakes.openai_server import embedding

BASE = "http://perdure.test"


async def _leave_it_to_the_relay(destination: str, stream: str) -> None:
    """No Temporal here: rows of the outbox wait, as they do while it is away."""


class WordVectors:
    """Stands in for the embedding model, which has tests of its own: texts that share words point the same way."""

    name = "words"

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return np.asarray([embedding(text) for text in texts], dtype=np.float32)

    async def embed_query(self, text: str) -> Vectors:
        return np.asarray(embedding(text), dtype=np.float32)


@dataclass
class FoundBefore:
    """Stands in for the retrieval path, which has tests of its own: gives what it was told and notes what it was asked."""

    hits: list[SearchHit] = field(default_factory=list)
    asked: list[SearchRequest] = field(default_factory=list)

    async def search(self, actor: Actor, request: SearchRequest) -> SearchResult:
        self.asked.append(request)
        return SearchResult(legs=[], degraded=[], hits=self.hits[: request.limit])


def serving(
    database: Database, blobs: Path, limits: dict[str, Any] | None = None, probes: list[EngineProbe] | None = None
) -> Serving:
    settings = Settings(limits=LimitSettings(**(limits or {})))
    registry = ToolRegistry([ListDocumentsTool(database)])
    approvals = Approvals(database, _leave_it_to_the_relay, registry)
    return Serving(
        settings=settings,
        database=database,
        hub=RunEventHub(database),
        identity=Identity.of(database),
        probes=probes or [],
        blobs=BlobStore.at_directory(blobs),
        reception=Reception(database, _leave_it_to_the_relay, settings.limits, current_traceparent),
        search=FoundBefore(),
        asking=Asking(database, _leave_it_to_the_relay, settings.answers, settings.chat_model, current_traceparent),
        agents=Agents(database, registry),
        sessions=Sessions(database, _leave_it_to_the_relay, settings.agents, current_traceparent),
        approvals=approvals,
        decision_links=DecisionLinks(database, approvals, ["a key of this installation"], hours=72),
        artifacts=Artifacts(database, BlobStore.at_directory(blobs)),
        memories=Memories(database, cast(EmbeddingModel, WordVectors()), settings.agents),
    )


def stream_role(database: Database) -> Stream:
    """A process without indexes, on the same Postgres."""
    return Stream(Settings(), database, RunEventHub(database), Identity.of(database), [])


@asynccontextmanager
async def running(container: Stream) -> AsyncIterator[FastAPI]:
    """The application with its lifespan begun and its hub listening."""
    app = create_app(container)
    async with app.router.lifespan_context(app):
        await container.hub.listening.wait()
        yield app


def client(app: FastAPI, key: str | None) -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE, headers=headers, timeout=30)


@dataclass(frozen=True)
class Person:
    """Someone with a key, and a client that sends it."""

    tenant: str
    user: str
    key_id: str
    key: str
    http: httpx.AsyncClient

    @property
    def actor(self) -> Actor:
        return Actor(tenant=self.tenant, user=self.user, key=self.key_id)


async def person(
    database: Database, app: FastAPI, *, tenant: str = "acme", role: str = "member", scopes: list[str] | None = None
) -> Person:
    async with database.begin(tenant) as transaction:
        await identity_store.add_tenant(transaction, tenant)
        view = UserView.model_validate(
            {"id": new_id(), "email": f"{new_id()}@example.org", "name": "Someone", "role": role, "disabled": False}
        )
        await users.add(transaction, view, by=view.id)
        created = ApiKeyCreated(id=new_id(), key=new_key())
        draft = ApiKeyDraft.model_validate({"user_id": view.id, "scopes": scopes})
        await api_keys.add(transaction, created, draft, by=view.id)
    return Person(tenant, view.id, created.id, created.key, client(app, created.key))


async def space_of(who: Person, name: str = "handbook") -> str:
    reply = await who.http.post("/v1/spaces", json={"name": name})
    assert reply.status_code == 201, reply.text
    return str(reply.json()["id"])


async def upload(
    who: Person, space: str, name: str = "leave.md", data: bytes = b"# Leave\n\n30 days."
) -> dict[str, Any]:
    reply = await who.http.post("/v1/documents", data={"space": space}, files=[("file", (name, data, "text/markdown"))])
    assert reply.status_code == 202, reply.text
    receipt: dict[str, Any] = reply.json()["documents"][0]
    return receipt


async def tell(database: Database, tenant: str, run_id: str, *drafts: tuple[str, dict[str, Any]]) -> None:
    """Appends events to a run, as an activity does."""
    events = [RunEventDraft(type=type, data=data) for type, data in drafts]
    async with database.begin(tenant) as transaction:
        await run_event_log.append(transaction, run_id, events)


async def all_items(who: Person, path: str, **query: Any) -> list[dict[str, Any]]:
    """Every page of a list."""
    items: list[dict[str, Any]] = []
    cursor = None
    while True:
        reply = await who.http.get(path, params={**query, **({"cursor": cursor} if cursor else {})})
        assert reply.status_code == 200, reply.text
        page = reply.json()
        items += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return items
