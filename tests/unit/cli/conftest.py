"""The CLI called in this process, against a server of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from services.cli.app import app
from tests.unit.cli.contract_server import KEY, ContractServer, RunningServer

Perdure = Callable[..., Result]


@pytest.fixture
def server() -> Iterator[ContractServer]:
    state = ContractServer()
    running = RunningServer(state)
    yield state
    running.close()


@pytest.fixture
def perdure(server: ContractServer, monkeypatch: pytest.MonkeyPatch) -> Perdure:
    """Calls a command against `server`."""
    monkeypatch.setenv("PERDURE_URL", server.url)
    monkeypatch.setenv("PERDURE_API_KEY", KEY)

    def call(*arguments: str) -> Result:
        return CliRunner().invoke(app, list(arguments))

    return call


def json_lines(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]
