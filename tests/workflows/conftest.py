"""One Temporal dev server for all workflow tests of a process."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from temporalio.testing import WorkflowEnvironment

from tests.workflows.temporal_server import start_environment


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def environment() -> AsyncIterator[WorkflowEnvironment]:
    environment = await start_environment()
    yield environment
    await environment.shutdown()
