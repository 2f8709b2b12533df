"""A session's sandbox: made on first use, found again after, and its `outputs` folder kept as artifacts of the run."""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from schemas.errors import PermanentFailure
from schemas.identifiers import new_id
from schemas.settings import SandboxSettings
from services.agents.tool import CallContext, ToolFailed
from services.gateways.sandbox import CommandResult, Sandboxes, SandboxFile, SandboxGone
from services.stores import artifacts_store
from services.stores.blob_store import BlobStore
from services.stores.database import Database

Connect = Callable[[], Awaitable[Sandboxes]]
HOME = "/home/user"
OUTPUTS = f"{HOME}/outputs"
OUTPUT_DEPTH = 3
MOST_OUTPUTS = 100


@dataclass(frozen=True)
class Left:
    """A file that a call left in `outputs`."""

    artifact_id: str
    name: str


class Workspaces:
    """What tools need of sandboxes. `connect` may take seconds the first time: it may start the server."""

    def __init__(self, database: Database, blobs: BlobStore, connect: Connect, settings: SandboxSettings) -> None:
        self._database = database
        self._blobs = blobs
        self._connect = connect
        self._settings = settings
        self._sandboxes: Sandboxes | None = None

    async def ready(self, context: CallContext) -> None:
        await self._of(context)

    async def run(self, context: CallContext, command: str, timeout_s: float) -> CommandResult:
        sandbox_id = await self._of(context)
        return await (await self._client()).run(
            sandbox_id, command, timeout_s=min(timeout_s, self._settings.command_s), tag=_tag(context)
        )

    async def stop(self, context: CallContext) -> None:
        async with self._database.begin(context.tenant) as transaction:
            sandbox_id = await artifacts_store.sandbox_of(transaction, context.workspace)
        if sandbox_id is not None:
            await (await self._client()).stop(sandbox_id, _tag(context))

    async def read(self, context: CallContext, path: str) -> bytes:
        sandbox_id = await self._of(context)
        return await (await self._client()).read(sandbox_id, absolute(path), max_bytes=self._settings.file_bytes)

    async def write(self, context: CallContext, path: str, data: bytes) -> None:
        sandbox_id = await self._of(context)
        await (await self._client()).write(sandbox_id, absolute(path), data)

    async def list_folder(self, context: CallContext, path: str) -> list[SandboxFile]:
        sandbox_id = await self._of(context)
        return await (await self._client()).list(sandbox_id, absolute(path))

    async def take_outputs(self, context: CallContext) -> list[Left]:
        """What is new or changed in `outputs` since the last look becomes artifacts of this run."""
        client, sandbox_id = await self._client(), await self._of(context)
        try:
            found = await client.list(sandbox_id, OUTPUTS, depth=OUTPUT_DEPTH)
        except PermanentFailure:
            return []  # nobody has made the folder
        async with self._database.begin(context.tenant) as transaction:
            known = await artifacts_store.digests(transaction, context.workspace)
        files = [file for file in found if file.kind == "file" and file.size <= self._settings.file_bytes]
        left = [await self._take(context, client, sandbox_id, file, known) for file in files[:MOST_OUTPUTS]]
        return [each for each in left if each is not None]

    async def _take(
        self, context: CallContext, client: Sandboxes, sandbox_id: str, file: SandboxFile, known: set[tuple[str, str]]
    ) -> Left | None:
        data = await client.read(sandbox_id, file.path, max_bytes=self._settings.file_bytes)
        name, digest = file.path.removeprefix(f"{OUTPUTS}/"), hashlib.sha256(data).hexdigest()
        if (name, digest) in known:
            return None
        artifact_id = new_id()
        key = f"{context.tenant}/artifacts/{context.run_id}/{artifact_id}"
        await self._blobs.put(key, data)
        async with self._database.begin(context.tenant) as transaction:
            await artifacts_store.add(
                transaction,
                artifact_id,
                run_id=context.run_id,
                session_id=context.session_id,
                user=context.actor.user,
                name=name,
                media_type=mimetypes.guess_type(name)[0] or "application/octet-stream",
                size=len(data),
                sha256=digest,
                blob_key=key,
            )
        return Left(artifact_id, name)

    async def _of(self, context: CallContext) -> str:
        """The session's sandbox. One that is gone (its server lost its disk, say) is replaced by an empty one."""
        async with self._database.begin(context.tenant) as transaction:
            kept = await artifacts_store.sandbox_of(transaction, context.workspace)
        client = await self._client()
        if kept is not None:
            try:
                await client.resume(kept)
                return kept
            except SandboxGone:
                pass
        made = await client.create({"session": context.workspace}, key=None if kept else _key(context))
        async with self._database.begin(context.tenant) as transaction:
            await artifacts_store.keep_sandbox(transaction, context.workspace, made)
        return made

    async def _client(self) -> Sandboxes:
        if self._sandboxes is None:
            self._sandboxes = await self._connect()
        return self._sandboxes


def absolute(path: str) -> str:
    """Relative paths are the workspace's. ToolFailed for one with a NUL; the server refuses what leaves the workspace."""
    if "\x00" in path:
        raise ToolFailed("A path cannot hold a NUL.")
    return path if path.startswith("/") else f"{HOME}/{path}"


def _key(context: CallContext) -> str:
    return f"session-{hashlib.sha256(f'{context.tenant}:{context.workspace}'.encode()).hexdigest()[:32]}"


def _tag(context: CallContext) -> str:
    return hashlib.sha256(context.key.encode()).hexdigest()[:32]
