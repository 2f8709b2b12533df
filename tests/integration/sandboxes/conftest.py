"""One local server for the tests of a process, or a real E2B endpoint when PERDURE_TEST_E2B_API_KEY is set."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from e2b import AsyncSandbox

from services.gateways.e2b_sandboxes import E2bSandboxes
from tests.integration.sandboxes.endpoint import REAL_DOMAIN, REAL_KEY
from tests.integration.sandboxes.server_process import SandboxServer


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxServer]:
    server = SandboxServer(tmp_path_factory.mktemp("sandboxes")).start()
    yield server
    server.stop()


@pytest.fixture
def sdk_options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What the SDK needs to reach the endpoint under test."""
    if REAL_KEY is not None:
        return {"api_key": REAL_KEY} | ({"domain": REAL_DOMAIN} if REAL_DOMAIN else {})
    local: SandboxServer = request.getfixturevalue("server")
    return local.sdk_options


@pytest.fixture
async def sandbox(sdk_options: dict[str, Any]) -> AsyncIterator[AsyncSandbox]:
    """A fresh sandbox of this test alone."""
    sandbox = await AsyncSandbox.create(timeout=120, **sdk_options)
    yield sandbox
    await sandbox.kill()


@pytest.fixture
async def other_sandbox(sdk_options: dict[str, Any]) -> AsyncIterator[AsyncSandbox]:
    sandbox = await AsyncSandbox.create(timeout=120, **sdk_options)
    yield sandbox
    await sandbox.kill()


@pytest.fixture
def sandboxes(sdk_options: dict[str, Any]) -> E2bSandboxes:
    """The adapter on the endpoint under test."""
    return E2bSandboxes(sdk_options["api_key"], url=sdk_options.get("api_url"), domain=sdk_options.get("domain"))


@pytest.fixture
async def sandbox_id(sandboxes: E2bSandboxes) -> AsyncIterator[str]:
    sandbox_id = await sandboxes.create({"session": "a test"})
    yield sandbox_id
    await sandboxes.kill(sandbox_id)
