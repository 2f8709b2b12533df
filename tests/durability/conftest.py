"""One data directory per module: its Perdure is killed and started again over and over."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.running.processes import PerdureProcess
from tests.world.fixtures import children_fixture, embedding_fixture, world_fixture

__all__ = ["chat_server", "children_fixture", "embedding_fixture", "perdure", "world_fixture"]
CHAT_MODEL = "openai-chat:scripted"
LEAN = {"PERDURE_PARSING__WORKERS": "1"}
"""A Perdure that is started dozens of times and given few files: a second parser would be started for nothing each time."""


@dataclass(frozen=True)
class ChatServer:
    """A chat model on a port of its own, which answers by script and outlives every kill."""

    url: str

    def script(self, *replies: dict[str, Any]) -> None:
        httpx.post(self.url.removesuffix("/v1") + "/script", json={"chat": list(replies)}, trust_env=False)

    def plan(self, name: str, *replies: dict[str, Any]) -> None:
        """Replies by their place in a conversation that says `[[name]]`: a request that is made again gets the same one."""
        httpx.post(self.url.removesuffix("/v1") + "/script", json={"plans": {name: list(replies)}}, trust_env=False)


@pytest.fixture(scope="module")
def chat_server() -> Iterator[ChatServer]:
    process = subprocess.Popen([sys.executable, "-m", "tests.fakes.openai_server"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield ChatServer(process.stdout.readline().strip())
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def perdure(tmp_path_factory: pytest.TempPathFactory, chat_server: ChatServer) -> Iterator[PerdureProcess]:
    """Not started yet. Whatever runs at the module's end is killed."""
    env = {"OPENAI_BASE_URL": chat_server.url, "OPENAI_API_KEY": "scripted", **LEAN}
    perdure = PerdureProcess(Path(tmp_path_factory.mktemp("durable")) / "data", env, warm=True)
    yield perdure
    if perdure.running:
        perdure.kill()
