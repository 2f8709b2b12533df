"""How a module of ours is run in a process of its own, and seen to its end."""

from __future__ import annotations

import contextlib
import os
import sys
from asyncio.subprocess import Process
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


def python_command(module: str, *arguments: str) -> list[str]:
    """-P keeps the working directory off the path: a user's own folder `services` must not be imported for ours."""
    return [sys.executable, "-P", "-m", module, *arguments]


async def ended(child: Process) -> int:
    """The exit status of a child whose output nobody reads any more.

    Its `wait` alone may never return: asyncio stops reading when a reply is larger than its buffer, then does not see the
    pipe's end, and waits for that too. So what is left of the reply is read and dropped.
    """
    with contextlib.suppress(RuntimeError):  # somebody is reading: then nothing is left over
        await child.communicate()
    return await child.wait()


def python_environment() -> dict[str, str]:
    """Ours plus the place of our packages, which need not be installed."""
    path = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{_ROOT}{os.pathsep}{path}" if path else str(_ROOT)}
