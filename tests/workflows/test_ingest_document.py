from __future__ import annotations

import pytest
from temporalio.testing import WorkflowEnvironment

from tests.workflows import ingest_scenarios as scenarios
from tests.workflows.scenarios import play

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_stages_run_in_order(environment: WorkflowEnvironment) -> None:
    finished = await play(environment, scenarios.COMPLETE)
    print(finished.end, finished.details, finished.activities.names_called())
