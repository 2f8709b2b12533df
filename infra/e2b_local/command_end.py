"""How a command ended, in one of the words of `schemas.sandboxes`, from its exit status and what was seen meanwhile."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

from schemas.sandboxes import Ended, SandboxLimits


@dataclass(frozen=True)
class Cause:
    """Why a command is being ended: a limit it went over, or somebody's wish."""

    ended: Ended
    detail: str


@dataclass(frozen=True)
class CommandEnd:
    """`exit_code` is -1 when it did not exit by itself."""

    ended: Ended
    exit_code: int
    detail: str


@dataclass(frozen=True)
class Seen:
    """What happened in its sandbox while it ran."""

    memory_kills: int
    refused_tasks: int
    workspace_full: bool
    left_at_limit: bool = False
    """It ended, and what it left running holds the sandbox at its limit of processes."""


def memory_cause(limits: SandboxLimits) -> Cause:
    return Cause("memory", f"the sandbox went over its {limits.memory_mb} MiB of memory (limit memory_mb)")


def processes_cause(limits: SandboxLimits) -> Cause:
    return Cause("processes", f"the sandbox reached its {limits.processes} processes (limit processes)")


def quota_cause(limits: SandboxLimits) -> Cause:
    return Cause("quota", f"the workspace is over its {limits.workspace_mb} MiB (limit workspace_mb)")


def files_cause(limits: SandboxLimits) -> Cause:
    return Cause("quota", f"the sandbox holds over {limits.workspace_files} files and folders (limit workspace_files)")


def output_cause(limits: SandboxLimits) -> Cause:
    return Cause(
        "output", f"the command wrote over {limits.output_mb} MiB of output (limit output_mb); write to a file"
    )


def command_end(status: int, cause: Cause | None, seen: Seen, limits: SandboxLimits) -> CommandEnd:
    """`status` is that of wait. A limit counts as the reason only where the command failed: one that coped has just exited.

    A fork bomb is the exception: its first process exits as if nothing were wrong.
    """
    if seen.left_at_limit and cause is None:
        return CommandEnd("processes", -1, processes_cause(limits).detail)
    killed_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    exit_code = -1 if killed_by is not None else os.WEXITSTATUS(status)
    if exit_code == 0:
        return CommandEnd("exited", 0, "")
    reason = cause if cause is not None else _reason(killed_by, exit_code, seen, limits)
    if reason is not None:
        return CommandEnd(reason.ended, exit_code, reason.detail)
    if killed_by is not None:
        return CommandEnd("signal", -1, signal.Signals(killed_by).name)
    return CommandEnd("exited", exit_code, "")


def _reason(killed_by: int | None, exit_code: int, seen: Seen, limits: SandboxLimits) -> Cause | None:
    by_signal = killed_by if killed_by is not None else exit_code - 128  # as a shell tells of its child's
    if seen.memory_kills:
        return memory_cause(limits)
    if by_signal == signal.SIGXCPU:
        return Cause("cpu", f"a process took over {limits.cpu_s} s of processor time (limit cpu_s)")
    if by_signal == signal.SIGXFSZ or seen.workspace_full:
        return quota_cause(limits)
    if seen.refused_tasks:
        return processes_cause(limits)
    return None
