"""The port to sandboxes: places where commands run and files live apart from everything else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from schemas.errors import PermanentFailure
from schemas.sandboxes import Ended

ENGINE = "sandboxes"
Stream = Literal["stdout", "stderr"]
OnOutput = Callable[[Stream, str], Awaitable[None]]
"""Awaited with each piece as it is written; what it raises ends the following, not the command."""


@dataclass(frozen=True)
class CommandResult:
    """`exit_code` is None when the command did not exit by itself; `detail` is then one sentence that says why.

    Of long output the beginning and the end are kept, and `left_out` characters between them are not.
    """

    exit_code: int | None
    stdout: str
    stderr: str
    ended: Ended
    detail: str
    left_out: int = 0


@dataclass(frozen=True)
class SandboxFile:
    """`path` is absolute inside the sandbox, `size` in bytes."""

    path: str
    kind: Literal["file", "dir", "symlink"]
    size: int


class SandboxGone(PermanentFailure):
    """There is no such sandbox (any more): it was killed, or its time was over."""

    def __init__(self, detail: str) -> None:
        super().__init__("sandbox_gone", detail)

    def __reduce__(self) -> tuple[type, tuple[str]]:  # type: ignore[override]
        return type(self), (self.detail,)


class Sandboxes(Protocol):
    """A paused sandbox is resumed by whatever uses it.

    Every method may raise EngineDown("sandboxes") when nobody answers, TransientFailure when trying again may help,
    SandboxGone for an unknown sandbox, and PermanentFailure for what will not change.
    """

    async def create(self, metadata: Mapping[str, str], *, key: str | None = None) -> str:
        """The id of a running sandbox. With the same `key` (lower-case letters, digits, hyphens) it is the same one."""
        ...

    async def resume(self, sandbox_id: str) -> None:
        """Its files are as they were; its processes may be gone."""
        ...

    async def run(
        self,
        sandbox_id: str,
        command: str,
        *,
        timeout_s: float,
        tag: str | None = None,
        on_output: OnOutput | None = None,
    ) -> CommandResult:
        """Runs it in bash with pipefail, in the workspace. However it ends, that is a result and no failure.

        With a `tag` it runs once: asked again, this follows the one that runs, or returns the end of one that just ended. When
        the caller is cancelled the command goes on; `stop` ends it.
        """
        ...

    async def stop(self, sandbox_id: str, tag: str) -> bool:
        """Ends the command with this tag and all it started. False when none runs."""
        ...

    async def read(self, sandbox_id: str, path: str, *, max_bytes: int) -> bytes:
        """PermanentFailure: "not_found", "too_large" over `max_bytes`, "refused" outside the workspace."""
        ...

    async def write(self, sandbox_id: str, path: str, data: bytes) -> None:
        """Makes the folders above it. PermanentFailure: "quota" when it does not fit, "refused" outside the workspace."""
        ...

    async def list(self, sandbox_id: str, path: str, *, depth: int = 1) -> list[SandboxFile]: ...

    async def pause(self, sandbox_id: str) -> None:
        """Files are kept and nothing runs; one that is paused stays so."""
        ...

    async def kill(self, sandbox_id: str) -> None:
        """With its files. One that is gone stays so."""
        ...

    async def exists(self, sandbox_id: str) -> bool:
        """Running or paused."""
        ...
