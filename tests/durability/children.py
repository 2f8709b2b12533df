"""The Python children of a serving Perdure, which parse and embed, by pid."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tests.running.processes import PerdureProcess

PARSER, EMBEDDER, CUTTER = "parser_child", "encoder_child", "text_child"
"""The last part of the modules they run."""


def children(perdure: PerdureProcess, module: str) -> list[int]:
    """Direct children of the serving process that run this module."""
    found = []
    for task in Path(f"/proc/{perdure.pid}/task").iterdir():
        for pid in (task / "children").read_text(encoding="ascii").split():
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if any(part.decode().endswith(module) for part in command):
                found.append(int(pid))
    return found


def send(pids: Sequence[int], number: int) -> None:
    assert pids
    for pid in pids:
        os.kill(pid, number)
