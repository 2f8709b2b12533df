"""Which endpoint is under test, and what only the local server promises."""

from __future__ import annotations

import os

import pytest
from e2b import AsyncSandbox
from e2b.sandbox.commands.command_handle import CommandExitException

REAL_KEY = os.environ.get("PERDURE_TEST_E2B_API_KEY") or None
REAL_DOMAIN = os.environ.get("PERDURE_TEST_E2B_DOMAIN") or None

local_only = pytest.mark.skipif(REAL_KEY is not None, reason="promised by the local server alone")

HOME = "/home/user"


async def failed(sandbox: AsyncSandbox, command: str, **options: object) -> CommandExitException:
    """The end of a command that must not succeed."""
    with pytest.raises(CommandExitException) as raised:
        await sandbox.commands.run(command, **options)  # type: ignore[call-overload]
    return raised.value
