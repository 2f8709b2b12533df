"""A `World`: everything between the API and the engines, real and in this process, with people and spaces in it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import String, cast, delete, func, select
from sqlalchemy.dialects.postgresql import JSONB

from schemas.access import Actor, SpaceRole, TenantRole
from schemas.answers import AnswerRequest, AnswerView
from schemas.documents import DocumentView, Receipt, Upload
from schemas.domain_events import DomainEvent
from schemas.errors import Problem
from schemas.identifiers import document_stream, new_id
from schemas.identity import ApiKeyCreated, ApiKeyDraft, GrantDraft, SpaceDraft, UserView
from schemas.runs import RunEvent
from schemas.search import SearchFilters, SearchRequest, SearchResult
from schemas.settings import Settings
from services.access import api_keys, users
from services.access.api_key import new_key
from services.access.authenticate import Caller
from services.access.identity import Identity
from services.access.load_access import effective_scopes
from services.answers.asking import Asking
from services.answers.retrieving import AnswerWork
from services.ingestion.index_repair import IndexRepair
from services.ingestion.member_reception import MemberReception
from services.ingestion.reception import Reception
from services.ingestion.version_work import VersionWork
from services.retrieval.finding import Finding
from services.retrieval.search import Search
from services.retrieval.statistics import Statistics
from services.stores import (
    chunks_store,
    document_views,
    documents_store,
    event_log,
    identity_store,
    run_event_log,
    runs_store,
)
from services.stores.blob_store import BlobStore
from services.stores.database import Database, Row
from services.stores.tables import metadata
from services.stores.tables.documents import document_versions, documents
from services.stores.tables.runs import runs
from tests.world.embedding_edge import CountedEmbedding
from tests.world.index_edges import HookedKeywords, HookedVectors
from tests.world.work_off import WorkOff, work_of

TENANT = "acme"


@dataclass(frozen=True)
class Person:
    """Someone with a key."""

    caller: Caller

    @property
    def actor(self) -> Actor:
        return self.caller.actor

    @property
    def id(self) -> str:
        return self.caller.actor.user


@dataclass
class World:
    """Perdure without processes around it. `root` is an admin of the first tenant."""

    settings: Settings
    database: Database
    blobs: BlobStore
    vectors: HookedVectors
    keywords: HookedKeywords
    model: CountedEmbedding
    reception: Reception
    finding: Finding
    searching: Search
    asking: Asking
    repair: IndexRepair
    work: WorkOff
    members: MemberReception
    statistics: Statistics
    root: Person = field(init=False)

    @property
    def identity(self) -> Identity:
        return self.work.identity

    # people and spaces

    async def person(
        self, role: TenantRole = "member", tenant: str = TENANT, scopes: list[str] | None = None
    ) -> Person:
        async with self.database.begin(tenant) as transaction:
            await identity_store.add_tenant(transaction, tenant)
            view = UserView(id=new_id(), email=f"{new_id()}@example.org", name="Someone", role=role, disabled=False)
            await users.add(transaction, view, by=view.id)
            created = ApiKeyCreated(id=new_id(), key=new_key())
            draft = ApiKeyDraft.model_validate({"user_id": view.id, "scopes": scopes})
            await api_keys.add(transaction, created, draft, by=view.id)
        actor = Actor(tenant=tenant, user=view.id, key=created.id)
        return Person(Caller(actor, role, effective_scopes(role, draft.scopes)))

    async def space(
        self,
        manager: Person,
        name: str | None = None,
        *,
        viewers: Sequence[Person] = (),
        contributors: Sequence[Person] = (),
        everyone: SpaceRole | None = None,
    ) -> str:
        """Its id. `everyone` is the role of the whole tenant."""
        space = await self.identity.spaces.create(manager.caller, SpaceDraft(name=name or f"space {new_id()}"))
        grants: dict[str, SpaceRole] = {"tenant": everyone} if everyone else {}
        grants |= {f"user:{viewer.id}": "viewer" for viewer in viewers}
        grants |= {f"user:{contributor.id}": "contributor" for contributor in contributors}
        for principal, role in grants.items():
            await self.grant(manager, space.id, principal, role)
        return space.id

    async def grant(self, manager: Person, space: str, principal: str, role: SpaceRole = "viewer") -> None:
        await self.identity.spaces.give(manager.caller, space, principal, GrantDraft(role=role))

    # documents

    async def upload(self, who: Person, space: str, name: str, data: bytes | str, **fields: Any) -> Receipt:
        """Received and queued, as the API does it: the blob first, then the row."""
        content = data.encode() if isinstance(data, str) else data
        key = f"{who.actor.tenant}/uploads/{new_id()}"
        await self.blobs.put(key, content)
        digest = hashlib.sha256(content).hexdigest()
        upload = Upload(space_id=space, external_id=name, blob_key=key, sha256=digest, bytes=len(content), **fields)
        try:
            return await self.reception.receive(who.actor, upload)
        except Problem:
            await self.blobs.delete(key)
            raise

    async def ingest(self, who: Person, space: str, name: str, data: bytes | str, **fields: Any) -> DocumentView:
        """Uploaded and worked off, members included."""
        receipt = await self.upload(who, space, name, data, **fields)
        await self.work.everything(who.actor.tenant)
        assert receipt.document_id is not None
        return await self.document(who, receipt.document_id)

    async def document(self, who: Person, document_id: str) -> DocumentView:
        async with self.database.begin(who.actor.tenant) as transaction:
            view = await document_views.get(transaction, who.actor, document_id)
        assert view is not None, "not readable"
        return view

    async def row(self, document_id: str, tenant: str = TENANT) -> Row:
        async with self.database.begin(tenant) as transaction:
            rows = await transaction.all(select(documents).where(documents.c.id == document_id))
        return rows[0]

    async def children(self, document_id: str, tenant: str = TENANT) -> list[str]:
        """Ids of the living documents right below."""
        async with self.database.begin(tenant) as transaction:
            return [row["id"] for row in await documents_store.children(transaction, document_id)]

    async def remove(self, who: Person, document_id: str) -> None:
        """Deleted, and every store emptied."""
        await self.reception.remove(who.actor, document_id)
        await self.work.everything(who.actor.tenant)

    async def claimed(self, receipt: Receipt, tenant: str = TENANT) -> VersionWork:
        """The work of a received upload, for a test that drives its stages one by one."""
        async with self.database.begin(tenant) as transaction:
            assert receipt.run_id is not None
            run = await runs_store.claim(transaction, receipt.run_id, f"execution-{receipt.run_id}")
        assert run is not None
        return work_of(run)

    async def text(self, document: DocumentView, version: int | None = None, tenant: str = TENANT) -> str:
        number = version or document.live_version
        return (await self.blobs.get(f"{tenant}/documents/{document.id}/{number}/text")).decode()

    async def chunks(self, document_id: str, version: int, tenant: str = TENANT) -> list[Row]:
        async with self.database.begin(tenant) as transaction:
            return list(await chunks_store.of_version(transaction, document_id, version))

    async def versions(self, document_id: str, tenant: str = TENANT) -> list[Row]:
        of_document = document_versions.c.document_id == document_id
        async with self.database.begin(tenant) as transaction:
            return list(await transaction.all(select(document_versions).where(of_document)))

    async def runs(self, document_id: str, tenant: str = TENANT) -> list[Row]:
        """Runs about the document, oldest first."""
        of_document = select(runs).where(runs.c.subject == document_id).order_by(runs.c.id)
        async with self.database.begin(tenant) as transaction:
            return list(await transaction.all(of_document))

    async def empty(self, table: str, tenant: str = TENANT) -> None:
        async with self.database.begin(tenant) as transaction:
            await transaction.execute(delete(metadata.tables[table]))

    async def history(self, document_id: str, tenant: str = TENANT) -> list[DomainEvent]:
        async with self.database.begin(tenant) as transaction:
            return await event_log.of_stream(transaction, document_stream(document_id))

    # looking

    async def search(self, who: Person, query: str, limit: int = 10, **fields: Any) -> SearchResult:
        """`fields` of the request; those of its filters may be given straight."""
        filters = {name: fields.pop(name) for name in list(fields) if name in SearchFilters.model_fields}
        asked = {**fields, "filters": filters or None}
        return await self.searching.search(who.actor, SearchRequest(query=query, limit=limit, **asked))

    async def found(self, who: Person, query: str, limit: int = 10, **fields: Any) -> list[str]:
        """The texts that a search gives."""
        return [hit.text for hit in (await self.search(who, query, limit, **fields)).hits]

    async def ask(self, who: Person, question: str, **fields: Any) -> AnswerView:
        """Asked, worked off and read again."""
        started = await self.asking.start(who.actor, AnswerRequest(question=question, **fields))
        await self.work.everything(who.actor.tenant)
        return await self.asking.view(who.actor, started.answer_id)

    async def asked(self, who: Person, question: str, **fields: Any) -> AnswerWork:
        """Asked and claimed, for a test that takes the steps itself."""
        started = await self.asking.start(who.actor, AnswerRequest(question=question, **fields))
        async with self.database.begin(who.actor.tenant) as transaction:
            await runs_store.claim(transaction, started.run_id, f"execution-{started.run_id}")
        return AnswerWork(who.actor.tenant, started.run_id, started.answer_id)

    async def events(self, run_id: str, tenant: str = TENANT) -> list[RunEvent]:
        async with self.database.begin(tenant) as transaction:
            return await run_event_log.after(transaction, run_id, 0, limit=10_000)

    async def count(self, table: str, tenant: str = TENANT, **equal: Any) -> int:
        named = metadata.tables[table]
        conditions = [named.c[column] == value for column, value in equal.items()]
        async with self.database.begin(tenant) as transaction:
            return int(await transaction.scalar(select(func.count()).select_from(named).where(*conditions)))

    async def until(self, condition: Callable[[], Awaitable[object]]) -> None:
        """Returns when the condition holds."""
        async with asyncio.timeout(30):
            while not await condition():
                await asyncio.sleep(0.01)

    async def points(self, document_id: str, tenant: str = TENANT) -> tuple[set[str], set[str]]:
        """Chunk ids of the document in the vector and in the keyword index."""
        return (
            await self.vectors.document_ids(tenant, document_id),
            await self.keywords.document_ids(tenant, document_id),
        )

    async def blob_keys(self) -> set[str]:
        return {key async for key in self.blobs.list()}

    async def everything_stored(self) -> str:
        """Every row of every table and every blob, as one text: what must be nowhere is not in here."""
        parts: list[str] = []
        async with self.database.every_tenant("a test looks for what must be nowhere") as transaction:
            for table in metadata.sorted_tables:
                whole = cast(func.to_jsonb(table.table_valued()), JSONB)
                rows = await transaction.all(select(cast(whole, String).label("row")))
                parts += [f"{table.name}: {row['row']}" for row in rows]
        for key in await self.blob_keys():
            parts += [key, (await self.blobs.get(key)).decode("utf-8", "ignore")]
        return "\n".join(parts)
