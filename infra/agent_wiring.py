"""The agents' part of the composition root."""

from __future__ import annotations

import os
from collections.abc import Callable

from activities.agent_activities import AgentActivities
from activities.step_runner import StepRunner
from schemas.settings import Settings
from services.agents.approval_waiting import ApprovalWaiting
from services.agents.calling import Calling
from services.agents.planning import Planning
from services.agents.registry import ToolRegistry
from services.agents.session_queue import SessionQueue
from services.agents.thinking import Thinking
from services.agents.tools.ask_user import AskUserTool
from services.agents.tools.delegate import DelegateTool
from services.agents.tools.list_documents import ListDocumentsTool
from services.agents.tools.read_document import ReadDocumentTool
from services.agents.tools.search import SearchTool
from services.agents.tools.write_document import WriteDocumentTool
from services.agents.turn_ending import TurnEnding
from services.gateways.select_chat_model import chat_models
from services.ingestion.reception import Reception
from services.ingestion.text_writing import TextWriting
from services.retrieval.finding import Finding
from services.stores.blob_store import BlobStore
from services.stores.database import Database


def build_registry(
    database: Database, blobs: BlobStore, reception: Reception, finding: Finding, settings: Settings
) -> ToolRegistry:
    """Every tool an agent can be given. Those of another feature get its service here: features never import each other."""
    return ToolRegistry(
        [
            SearchTool(database, finding, settings.retrieval),
            ReadDocumentTool(database, settings.agents.read_tokens),
            ListDocumentsTool(database),
            AskUserTool(),
            DelegateTool(database, settings.agents),
            WriteDocumentTool(database, TextWriting(database, blobs, reception)),
        ]
    )


def agent_activities(
    database: Database,
    settings: Settings,
    registry: ToolRegistry,
    runner: StepRunner,
    failpoint: Callable[[str], None],
) -> AgentActivities:
    thinking = Thinking(
        database,
        chat_models(settings, os.environ, settings.agents.model_timeout_s),
        registry,
        Planning(registry, settings.agents),
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
