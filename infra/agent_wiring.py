"""The agents' part of the composition root."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Protocol

from activities.agent_activities import AgentActivities
from activities.step_runner import StepRunner
from schemas.settings import AgentSettings, Settings
from services.agents.approval_waiting import ApprovalWaiting
from services.agents.approvals import Approvals
from services.agents.calling import Calling
from services.agents.decision_links import DecisionLinks
from services.agents.memories import Memories
from services.agents.planning import Planning
from services.agents.recalling import Recalling
from services.agents.registry import ToolRegistry
from services.agents.session_queue import SessionQueue
from services.agents.thinking import Thinking
from services.agents.tool import Tool
from services.agents.tools.ask_user import AskUserTool
from services.agents.tools.delegate import DelegateTool
from services.agents.tools.list_documents import ListDocumentsTool
from services.agents.tools.memory_tools import ForgetTool, RecallTool, RememberTool
from services.agents.tools.read_document import ReadDocumentTool
from services.agents.tools.sandbox_tools import ListFilesTool, ReadFileTool, RunCommandTool, WriteFileTool
from services.agents.tools.search import SearchTool
from services.agents.tools.write_document import WriteDocumentTool
from services.agents.turn_ending import TurnEnding
from services.agents.workspace import Connect, Workspaces
from services.gateways.sandbox import Sandboxes
from services.gateways.select_chat_model import chat_models
from services.ingestion.reception import Reception
from services.ingestion.text_writing import TextWriting
from services.retrieval.finding import Finding
from services.stores.blob_store import BlobStore
from services.stores.database import Database


class LocalSandboxes(Protocol):
    """The sandbox server of this machine, once it runs."""

    @property
    def url(self) -> str: ...
    @property
    def key_file(self) -> Path: ...


StartLocally = Callable[[], Awaitable[LocalSandboxes]]


def build_registry(
    database: Database,
    blobs: BlobStore,
    reception: Reception,
    finding: Finding,
    sandboxes: Connect | None,
    memories: Memories,
    settings: Settings,
) -> ToolRegistry:
    """Every tool an agent can be given. Those of another feature get its service here: features never import each other."""
    workspaces = Workspaces(database, blobs, sandboxes, settings.sandboxes) if sandboxes is not None else None
    return ToolRegistry(
        [
            *(sandbox_tools(workspaces, settings) if workspaces is not None else ()),
            SearchTool(database, finding, settings.retrieval),
            ReadDocumentTool(database, settings.agents.read_tokens),
            ListDocumentsTool(database),
            AskUserTool(),
            RememberTool(memories),
            RecallTool(memories),
            ForgetTool(memories),
            DelegateTool(database, settings.agents),
            WriteDocumentTool(database, TextWriting(database, blobs, reception)),
        ]
    )


def sandbox_tools(workspaces: Workspaces, settings: Settings) -> list[Tool]:
    return [
        RunCommandTool(workspaces, settings.sandboxes.command_s),
        ReadFileTool(workspaces),
        WriteFileTool(workspaces),
        ListFilesTool(workspaces),
    ]


def sandboxes_at(settings: Settings, env: Mapping[str, str], start_locally: StartLocally | None) -> Connect | None:
    """E2B's when its key is in the environment, else this machine's, started on first use; null when there are none."""
    api_key, idle_s = env.get("E2B_API_KEY"), settings.sandboxes.idle_s
    if api_key is not None:

        async def connect_to_e2b() -> Sandboxes:
            return (await _client())(api_key, domain=env.get("E2B_DOMAIN"), idle_s=idle_s)

        return connect_to_e2b
    if start_locally is None or not settings.sandboxes.local:
        return None

    async def connect_here() -> Sandboxes:
        server, client = await start_locally(), await _client()
        return client(server.key_file.read_text(encoding="utf-8").strip(), url=server.url, idle_s=idle_s)

    return connect_here


async def _client() -> Callable[..., Sandboxes]:
    """Loaded by whoever first needs it: the SDK takes a second to import, which the event loop must not wait for."""
    loaded = await asyncio.to_thread(import_module, "services.gateways.e2b_sandboxes")
    made: Callable[..., Sandboxes] = loaded.E2bSandboxes
    return made


def decision_links(database: Database, approvals: Approvals, settings: AgentSettings) -> DecisionLinks:
    keys = settings.link_keys.get_secret_value() if settings.link_keys is not None else ""
    return DecisionLinks(
        database, approvals, [key.strip() for key in keys.split(",") if key.strip()], settings.link_hours
    )


def agent_activities(
    database: Database,
    settings: Settings,
    registry: ToolRegistry,
    memories: Memories,
    runner: StepRunner,
    failpoint: Callable[[str], None],
) -> AgentActivities:
    thinking = Thinking(
        database,
        chat_models(settings, os.environ, settings.agents.model_timeout_s),
        registry,
        Planning(registry, settings.agents),
        Recalling(database, memories),
        settings.agents,
        token_rows_per_s=settings.answers.token_rows_per_s,
        failpoint=failpoint,
    )
    return AgentActivities(
        database,
        runner,
        thinking=thinking,
        calling=Calling(database, registry, settings.agents, failpoint),
        ending=TurnEnding(database, settings.answers),
        queue=SessionQueue(database),
        waiting=ApprovalWaiting(database),
        default_model=settings.chat_model,
    )
