"""What a sandbox may use, and the words for how a command in it ended.

The local server writes these words into the protocol's error text and the adapter reads them there; E2B's own servers use
the same form for signals ("signal: killed"), so one reader serves both.
"""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

Ended = Literal["exited", "signal", "timeout", "memory", "processes", "quota", "output", "cpu", "stopped"]
"""`exited` by itself with a code; `signal` by one nobody here sent; `stopped` because its sandbox was paused or killed or the
command was asked to end; the others name the limit that ended it."""


class SandboxLimits(BaseModel):
    """Bounds of one sandbox, shared by all its commands unless it says otherwise. Messages name the field that was hit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    memory_mb: int = Field(1_024, ge=64, description="memory of a sandbox, in MiB")
    cpus: float = Field(
        1.0, gt=0, le=256, description="processors a sandbox may keep busy, where the kernel lets us say"
    )
    cpu_s: int = Field(1_800, ge=1, description="processor seconds one process may take")
    niceness: int = Field(5, ge=0, le=19, description="how far sandboxes step back for everything else")
    processes: int = Field(256, ge=8, description="processes and threads of a sandbox")
    open_files: int = Field(1_024, ge=64, description="files one process may have open")
    workspace_mb: int = Field(
        1_024, ge=1, description="size of a sandbox's workspace, in MiB; also of its largest file"
    )
    workspace_files: int = Field(100_000, ge=10, description="files and folders in a workspace, and in its /tmp")
    tmp_mb: int = Field(256, ge=1, description="size of a sandbox's /tmp and of its /dev/shm, in MiB of memory")
    disk_reserve_mb: int = Field(
        512, ge=0, description="free disk, in MiB, below which running commands are ended to keep the machine alive"
    )
    output_mb: int = Field(16, ge=1, description="output of one command, in MiB")
    command_s: float = Field(3_600, gt=0, description="seconds one command may take")
    life_s: int = Field(86_400, ge=1, description="longest time in seconds for which a sandbox may be asked to live")
    sandboxes: int = Field(100, ge=1, description="sandboxes that may run at once; paused ones do not count")


def tell_end(ended: Ended, detail: str) -> str:
    """The error text of a command that did not simply exit."""
    return f"{ended}: {detail}"


def read_end(error: str) -> tuple[Ended, str] | None:
    """(how it ended, detail) of an error text, or None when it says neither (E2B: "exit status 1")."""
    word, colon, detail = error.partition(": ")
    ended = next((each for each in get_args(Ended) if each == word), None)
    return (ended, detail) if colon and ended is not None else None
