"""envd's /files: contents of files, read and written while they travel."""

from __future__ import annotations

import asyncio
import os
import zlib
from collections.abc import AsyncGenerator, AsyncIterator

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from infra.e2b_local.callers import Caller, NotAllowed, NotFoundHere, check_user, sandbox_of
from infra.e2b_local.sandbox import Sandbox
from infra.e2b_local.sandboxes import Sandboxes
from infra.e2b_local.workspace_paths import HOME, FileFault, name_in_workspace
from schemas.errors import Problem
from services.api.multipart_stream import MultipartStream

_PIECE_BYTES = 1 << 20
_STATUSES = {"missing": 404, "exists": 409, "refused": 400, "full": 507}


class FileTransfer:
    """GET gives one file; POST takes one as the body, or several as multipart with their paths as file names."""

    def __init__(self, sandboxes: Sandboxes) -> None:
        self._sandboxes = sandboxes

    async def handle(self, request: Request) -> Response:
        try:
            sandbox = sandbox_of(request.headers, self._sandboxes)
            check_user(request.query_params.get("username"))
            if request.method == "GET":
                return await _download(sandbox, request.query_params.get("path", ""))
            return JSONResponse(await self._upload(sandbox, request))
        except FileFault as error:
            return _problem(_STATUSES[error.kind], str(error))
        except Caller as error:
            return _problem({NotFoundHere: 502, NotAllowed: 401}.get(type(error), 400), str(error))
        except Problem as error:
            return _problem(error.status, error.detail)
        except (ClientDisconnect, zlib.error):
            return _problem(400, "the upload broke off or is not what it says it is")

    async def health(self, request: Request) -> Response:
        """Whether the sandbox runs."""
        try:
            sandbox_of(request.headers, self._sandboxes)
        except Caller as error:
            return _problem(502 if isinstance(error, NotFoundHere) else 401, str(error))
        return Response(status_code=204)

    async def _upload(self, sandbox: Sandbox, request: Request) -> list[dict[str, str]]:
        path, kind = request.query_params.get("path"), request.headers.get("content-type", "")
        length = int(request.headers.get("content-length", 0))
        if length > await sandbox.room_bytes() + (await _present_bytes(sandbox, path) if path else 0):
            raise self._full(sandbox)
        if not kind.startswith("multipart/"):
            if path is None:
                raise FileFault("refused", "name the file with ?path=")
            packed = request.headers.get("content-encoding") == "gzip"
            return [await self._write(sandbox, path, _inflated(request.stream()) if packed else request.stream())]
        form, written = MultipartStream(kind, request.stream()), []
        while (part := await form.next_part()) is not None:
            if part.name == "file":
                written.append(await self._write(sandbox, path or part.filename or "", form.chunks()))
        return written

    async def _write(self, sandbox: Sandbox, path: str, data: AsyncIterator[bytes]) -> dict[str, str]:
        """Replaces what was there. What does not fit is not kept in part."""
        file = await asyncio.to_thread(sandbox.workspace.open_to_write, path)
        try:
            os.ftruncate(file, 0)
            room = await sandbox.room_bytes()
            async for piece in data:
                room -= len(piece)
                if room < 0:
                    os.ftruncate(file, 0)
                    raise self._full(sandbox)
                await asyncio.to_thread(_write_all, file, piece)
        finally:
            os.close(file)
        place = f"{HOME}/{name_in_workspace(path)}"
        return {"name": place.rpartition("/")[2], "type": "file", "path": place}

    def _full(self, sandbox: Sandbox) -> FileFault:
        limits = self._sandboxes.host.limits
        return FileFault(
            "full",
            f"the workspace has no room for this: it may hold {limits.workspace_mb} MiB (limit workspace_mb) "
            f"and {limits.workspace_files} files (limit workspace_files)",
        )


async def _present_bytes(sandbox: Sandbox, path: str) -> int:
    """Of the file that is about to be replaced."""
    try:
        return (await asyncio.to_thread(sandbox.workspace.stat, path)).size
    except FileFault:
        return 0


async def _download(sandbox: Sandbox, path: str) -> Response:
    opened = await asyncio.to_thread(sandbox.workspace.open_to_read, path)
    file = os.fdopen(opened, "rb", buffering=0)  # also closed when nobody comes to read
    length = os.fstat(opened).st_size

    async def pieces() -> AsyncGenerator[bytes, None]:
        left = length  # what is appended meanwhile is not part of this answer
        with file:
            while left and (piece := await asyncio.to_thread(file.read, min(_PIECE_BYTES, left))):
                left -= len(piece)
                yield piece

    return StreamingResponse(pieces(), media_type="application/octet-stream", headers={"content-length": str(length)})


async def _inflated(data: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """In pieces of bounded size, however much a few bytes inflate to."""
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
    async for piece in data:
        rest = piece
        while rest:
            yield inflater.decompress(rest, _PIECE_BYTES)
            rest = inflater.unconsumed_tail
    yield inflater.flush()


def _write_all(file: int, piece: bytes) -> None:
    rest = memoryview(piece)
    while rest:
        rest = rest[os.write(file, rest) :]


def _problem(status: int, message: str) -> JSONResponse:
    return JSONResponse({"code": status, "message": message}, status)
