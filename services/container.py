"""What each kind of process may build: one frozen dataclass per role, filled by `infra/wiring.py` alone.

`Stream` opens no index, so any number of such processes may serve one Postgres. `Serving` is the whole API.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from schemas.access import Actor
from schemas.agents import AgentDraft, AgentView
from schemas.answers import AnswerRequest, AnswerStarted, AnswerView
from schemas.approvals import ApprovalView, Decided, Decision
from schemas.conversations import (
    ArtifactView,
    ForkDraft,
    MessageAccepted,
    MessageDraft,
    MessageView,
    SessionDraft,
    SessionView,
)
from schemas.documents import Receipt, Upload
from schemas.memory import MemoryDraft, MemorySwitch, MemoryView
from schemas.search import SearchRequest, SearchResult
from schemas.settings import Settings
from services.access.authenticate import Caller
from services.access.identity import Identity
from services.agents.artifacts import ArtifactContent
from services.agents.decision_links import IssuedLink, Ticket
from services.events.run_event_hub import RunEventHub
from services.stores.database import Database


class ReceptionPort(Protocol):
    """Takes documents in and lets them go; checks rights itself (`services/ingestion/reception.py`)."""

    async def receive(
        self, actor: Actor, upload: Upload, *, earlier: Sequence[Receipt] = (), last: bool = True
    ) -> Receipt: ...
    async def retry(self, actor: Actor, document_id: str) -> str: ...
    async def cancel(self, actor: Actor, document_id: str) -> str: ...
    async def remove(self, actor: Actor, document_id: str) -> str: ...
    async def remove_space(self, actor: Actor, space_id: str) -> str: ...
    async def set_readers(self, actor: Actor, document_id: str, readers: list[str]) -> None: ...
    async def set_tags(self, actor: Actor, document_id: str, tags: list[str]) -> None: ...


class SearchPort(Protocol):
    """Finds passages (`services/retrieval/search.py`)."""

    async def search(self, actor: Actor, request: SearchRequest) -> SearchResult: ...


class AskingPort(Protocol):
    """Starts and shows answers (`services/answers/asking.py`)."""

    async def start(self, actor: Actor, request: AnswerRequest) -> AnswerStarted: ...
    async def view(self, actor: Actor, answer_id: str) -> AnswerView: ...


class AgentsPort(Protocol):
    """Agents as stored configuration (`services/agents/agents.py`)."""

    async def create(self, caller: Caller, draft: AgentDraft) -> AgentView: ...
    async def change(self, caller: Caller, agent_id: str, draft: AgentDraft) -> AgentView: ...
    async def remove(self, caller: Caller, agent_id: str) -> None: ...
    async def get(self, caller: Caller, agent_id: str) -> AgentView: ...
    async def newest(self, caller: Caller, before: str | None, limit: int) -> list[AgentView]: ...


class SessionsPort(Protocol):
    """Sessions and their messages (`services/agents/sessions.py`)."""

    async def create(self, actor: Actor, draft: SessionDraft) -> SessionView: ...
    async def get(self, actor: Actor, session_id: str) -> SessionView: ...
    async def newest(self, actor: Actor, before: str | None, limit: int) -> list[SessionView]: ...
    async def send(self, actor: Actor, session_id: str, draft: MessageDraft) -> MessageAccepted: ...
    async def messages(self, actor: Actor, session_id: str, after: int, limit: int) -> list[MessageView]: ...
    async def fork(self, actor: Actor, session_id: str, draft: ForkDraft) -> SessionView: ...


class ApprovalsPort(Protocol):
    """Requests and decisions (`services/agents/approvals.py`)."""

    async def newest(self, actor: Actor, state: str | None, before: str | None, limit: int) -> list[ApprovalView]: ...
    async def get(self, actor: Actor, approval_id: str) -> ApprovalView: ...
    async def decide(self, actor: Actor, approval_id: str, decision: Decision) -> Decided: ...


class DecisionLinksPort(Protocol):
    """Signed links that decide (`services/agents/decision_links.py`)."""

    async def issue(self, actor: Actor, approval_id: str) -> IssuedLink: ...
    def ticket(self, token: str) -> Ticket: ...
    async def look(self, ticket: Ticket) -> ApprovalView: ...
    async def decide(self, ticket: Ticket, decision: Decision) -> Decided: ...


class ArtifactsPort(Protocol):
    """Files that runs left behind (`services/agents/artifacts.py`)."""

    async def of_run(self, actor: Actor, run_id: str, after: str, limit: int) -> list[ArtifactView]: ...
    async def content(self, actor: Actor, artifact_id: str) -> ArtifactContent: ...


class MemoriesPort(Protocol):
    """What agents remember of a person (`services/agents/memories.py`)."""

    async def add(self, actor: Actor, draft: MemoryDraft) -> MemoryView: ...
    async def change(self, actor: Actor, memory_id: str, draft: MemoryDraft) -> MemoryView: ...
    async def of_person(self, actor: Actor, after: str, limit: int) -> list[MemoryView]: ...
    async def remove(self, actor: Actor, memory_id: str) -> None: ...
    async def remove_all(self, actor: Actor) -> None: ...
    async def switch(self, actor: Actor) -> MemorySwitch: ...
    async def set_switch(self, actor: Actor, wanted: MemorySwitch) -> MemorySwitch: ...


class BlobPort(Protocol):
    """Bytes by key (`services/stores/blob_store.py`)."""

    async def put(self, key: str, data: bytes) -> None: ...
    async def put_stream(
        self, key: str, pieces: AsyncIterator[bytes], max_bytes: int | None = None
    ) -> tuple[int, str]: ...
    def stream(self, key: str) -> AsyncIterator[bytes]: ...
    async def delete(self, key: str) -> None: ...


@dataclass(frozen=True)
class EngineProbe:
    """Asks one engine whether it answers.

    `check` gives one sentence on how it is, or raises EngineDown. Without a `needed` engine the process is not ready.
    `remedy` says what an operator can do when it is away.
    """

    name: str
    check: Callable[[], Awaitable[str]]
    remedy: str
    needed: bool = False


@dataclass(frozen=True)
class Stream:
    """Runs, events and identity: what needs no index."""

    settings: Settings
    database: Database
    hub: RunEventHub
    identity: Identity
    probes: Sequence[EngineProbe]


@dataclass(frozen=True)
class Serving(Stream):
    """The whole API."""

    blobs: BlobPort
    reception: ReceptionPort
    search: SearchPort
    asking: AskingPort
    agents: AgentsPort
    sessions: SessionsPort
    approvals: ApprovalsPort
    decision_links: DecisionLinksPort
    artifacts: ArtifactsPort
    memories: MemoriesPort
