"""envd's filesystem service, for the workspace alone."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any, ParamSpec, TypeVar

from connectrpc.code import Code
from connectrpc.errors import ConnectError
from connectrpc.request import RequestContext
from e2b.envd.filesystem import filesystem_pb as pb
from e2b.envd.filesystem.filesystem_connect import Filesystem
from protobuf.wkt import Timestamp

from infra.e2b_local.callers import USER, Caller, connect_error, sandbox_of
from infra.e2b_local.sandbox import Sandbox
from infra.e2b_local.sandboxes import Sandboxes
from infra.e2b_local.workspace import Entry
from infra.e2b_local.workspace_paths import FileFault

Context = RequestContext[Any, Any]
P = ParamSpec("P")
T = TypeVar("T")

_CODES = {
    "missing": Code.NOT_FOUND,
    "exists": Code.ALREADY_EXISTS,
    "refused": Code.INVALID_ARGUMENT,
    "full": Code.RESOURCE_EXHAUSTED,
}
_TYPES = {"file": pb.FileType.FILE, "dir": pb.FileType.DIRECTORY, "symlink": pb.FileType.SYMLINK}
_NO_WATCHING = "watching folders is not supported by local sandboxes; list the folder again instead"


class FilesystemService(Filesystem):
    """Each method looks, or acts, once; paths are resolved by the kernel inside the workspace."""

    def __init__(self, sandboxes: Sandboxes) -> None:
        self._sandboxes = sandboxes

    async def stat(self, request: pb.StatRequest, ctx: Context, /) -> pb.StatResponse:
        return pb.StatResponse(entry=_info(await _done(self._sandbox(ctx).workspace.stat, request.path)))

    async def make_dir(self, request: pb.MakeDirRequest, ctx: Context, /) -> pb.MakeDirResponse:
        return pb.MakeDirResponse(entry=_info(await _done(self._sandbox(ctx).workspace.make_folder, request.path)))

    async def move(self, request: pb.MoveRequest, ctx: Context, /) -> pb.MoveResponse:
        workspace = self._sandbox(ctx).workspace
        return pb.MoveResponse(entry=_info(await _done(workspace.move, request.source, request.destination)))

    async def list_dir(self, request: pb.ListDirRequest, ctx: Context, /) -> pb.ListDirResponse:
        workspace = self._sandbox(ctx).workspace
        entries = await _done(workspace.list, request.path, request.depth or 1)
        return pb.ListDirResponse(entries=[_info(entry) for entry in entries])

    async def remove(self, request: pb.RemoveRequest, ctx: Context, /) -> pb.RemoveResponse:
        sandbox = self._sandbox(ctx)
        await _done(sandbox.workspace.remove, request.path, sandbox.bin)
        return pb.RemoveResponse()

    def watch_dir(self, request: pb.WatchDirRequest, ctx: Context, /) -> AsyncIterator[pb.WatchDirResponse]:
        raise ConnectError(Code.UNIMPLEMENTED, _NO_WATCHING)

    async def create_watcher(self, request: pb.CreateWatcherRequest, ctx: Context, /) -> pb.CreateWatcherResponse:
        raise ConnectError(Code.UNIMPLEMENTED, _NO_WATCHING)

    def _sandbox(self, ctx: Context) -> Sandbox:
        try:
            return sandbox_of(ctx.request_headers, self._sandboxes)
        except Caller as error:
            raise connect_error(error) from None


async def _done(act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """In a thread: disks are slow."""
    try:
        return await asyncio.to_thread(act, *args, **kwargs)
    except FileFault as error:
        raise ConnectError(_CODES[error.kind], str(error)) from None


def _info(entry: Entry) -> pb.EntryInfo:
    info = pb.EntryInfo(
        name=_readable(entry.name),
        type=_TYPES.get(entry.kind, pb.FileType.UNSPECIFIED),
        path=_readable(entry.path),
        size=entry.size,
        mode=stat.S_IMODE(entry.mode),
        permissions=stat.filemode(entry.mode),
        owner=USER,
        group=USER,
        modified_time=Timestamp.from_datetime(datetime.fromtimestamp(entry.modified_at, UTC)),
        is_symlink=entry.kind == "symlink",
    )
    if entry.target is not None:
        info.symlink_target = _readable(entry.target)
    return info


def _readable(name: str) -> str:
    """Names are bytes to the kernel; what is not UTF-8 in them cannot be told in JSON."""
    return os.fsencode(name).decode("utf-8", "replace")
