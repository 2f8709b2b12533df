"""How a module of ours is run in a process of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


def python_command(module: str, *arguments: str) -> list[str]:
    """-P keeps the working directory off the path: a user's own folder `services` must not be imported for ours."""
    return [sys.executable, "-P", "-m", module, *arguments]


def python_environment() -> dict[str, str]:
    """Ours plus the place of our packages, which need not be installed."""
    path = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{_ROOT}{os.pathsep}{path}" if path else str(_ROOT)}
