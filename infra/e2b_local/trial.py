"""Whether sandboxes can run on this machine: found out by running one."""

from __future__ import annotations

import asyncio
import os
import secrets
from pathlib import Path

from infra.e2b_local.cell import Cell, CommandRefused
from infra.e2b_local.cell_arguments import base_environment
from infra.e2b_local.cell_process import CellFailed
from infra.e2b_local.command import CommandRequest
from infra.e2b_local.command_end import Cause, CommandEnd
from infra.e2b_local.data_folder import DataFolder
from infra.e2b_local.host import Host
from infra.e2b_local.host_places import new_owner
from infra.e2b_local.kernel_calls import RESOLVE_BENEATH, openat2
from infra.e2b_local.rlimit_groups import RlimitGroups, counts_processes_by_namespace
from infra.e2b_local.seccomp_filter import UnknownMachine
from infra.e2b_local.workspace import Workspace, remove_tree
from infra.e2b_local.workspace_paths import HOME

_SHELL = Path("/bin/bash")
_WITHIN_S = 20.0


async def why_not(data: DataFolder, host: Host) -> str | None:
    """One sentence for a person, or None when a sandbox has run and ended as it should."""
    reason = _missing(host)
    if reason is None:
        try:
            reason = await _run_one(data, host)
        except (CellFailed, CommandRefused, UnknownMachine, OSError, TimeoutError) as error:
            reason = str(error) or type(error).__name__
    if reason is None:
        return None
    return f"Sandboxes cannot run on this machine, so none is started: {reason.removeprefix('bwrap: ').rstrip('.')}."


def _missing(host: Host) -> str | None:
    if not _SHELL.exists():
        return f"there is no {_SHELL}"
    if isinstance(host.groups, RlimitGroups) and not counts_processes_by_namespace():
        return "processes can only be limited with Linux 5.14 or newer, or with control groups that can be written to"
    here = os.open("/", os.O_PATH)
    try:
        os.close(openat2(here, ".", os.O_PATH, RESOLVE_BENEATH))
    except OSError as error:
        return f"paths cannot be resolved safely (openat2: {error.strerror})"
    finally:
        os.close(here)
    return None


async def _run_one(data: DataFolder, host: Host) -> str | None:
    name, owner = f"trial{secrets.token_hex(4)}", new_owner()
    folder = data.sandbox(name)
    folder.mkdir()
    folder.chmod(0o711)
    workspace = Workspace(folder / "view", owner)
    try:
        workspace.create()
        cell = await Cell.start(name, workspace.home, owner, host)
        try:
            end = await asyncio.wait_for(_end_of_command(cell, name), _WITHIN_S)
        finally:
            await cell.stop(Cause("stopped", "the trial is over"))
        return None if end.exit_code == 0 else f"a command in one ended with {end}"
    finally:
        remove_tree(folder)


async def _end_of_command(cell: Cell, name: str) -> CommandEnd:
    arguments, environment = ("-l", "-c", "true"), base_environment(name)
    request = CommandRequest(str(_SHELL), arguments, {}, None, None, False, HOME, environment, _WITHIN_S, "too slow")
    command = await cell.run(request)
    with command.listen() as output:
        while await output.get() is not None:
            continue
    assert command.end is not None, "listeners are told of the end after it is set"
    return command.end
