"""Sandboxes over the E2B SDK: E2B's cloud, one of your own, or the local server, which speaks the same protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from e2b import AsyncSandbox
from e2b.api import client_async
from e2b.exceptions import SandboxNotFoundException
from e2b.sandbox.filesystem.filesystem import EntryInfo, FileType

from schemas.errors import PermanentFailure
from services.gateways.e2b_commands import E2bCommand
from services.gateways.e2b_failures import TOO_LARGE, failures_named
from services.gateways.sandbox import CommandResult, OnOutput, SandboxFile

vars(client_async)["connection_retries"] = 0
"""E2B_CONNECTION_RETRIES by another way: the SDK reads that when it is imported. Who calls us retries, and nobody else."""

_REQUEST_TIMEOUT_S = 60.0
_PAUSE_TIMEOUT_S = 600.0
_KINDS = {FileType.FILE: "file", FileType.DIR: "dir", FileType.SYMLINK: "symlink"}


class E2bSandboxes:
    """`url` is that of a local server; without it the SDK goes to `domain`, or to E2B's own. Retries of the SDK are off.

    A sandbox that is not used for `idle_s` pauses by itself and keeps its files.
    """

    def __init__(
        self,
        api_key: str,
        *,
        url: str | None = None,
        domain: str | None = None,
        template: str | None = None,
        idle_s: int = 600,
        kept_characters: int = 2_000_000,
    ) -> None:
        self._options: dict[str, Any] = {"api_key": api_key, "retries": 0, "request_timeout": _REQUEST_TIMEOUT_S}
        if url is not None:
            self._options |= {"api_url": url, "sandbox_url": url, "http_version": "1.1"}
        if domain is not None:
            self._options |= {"domain": domain}
        self._template = template
        self._idle_s = idle_s
        self._kept_characters = kept_characters

    async def create(self, metadata: Mapping[str, str], *, key: str | None = None) -> str:
        with failures_named():
            sandbox = await AsyncSandbox.create(
                template=self._template,
                timeout=self._idle_s,
                metadata=dict(metadata),
                allow_internet_access=False,
                lifecycle={"on_timeout": "pause"},
                idempotency_key=key,
                **self._options,
            )
            return sandbox.sandbox_id

    async def resume(self, sandbox_id: str) -> None:
        with failures_named():
            await self._used(sandbox_id)

    async def run(
        self,
        sandbox_id: str,
        command: str,
        *,
        timeout_s: float,
        tag: str | None = None,
        on_output: OnOutput | None = None,
    ) -> CommandResult:
        with failures_named():
            sandbox = await self._used(sandbox_id, timeout_s)
            return await E2bCommand(sandbox, tag, self._kept_characters).run(command, timeout_s, on_output)

    async def stop(self, sandbox_id: str, tag: str) -> bool:
        with failures_named():
            return await E2bCommand(await self._used(sandbox_id), tag, self._kept_characters).stop()

    async def read(self, sandbox_id: str, path: str, *, max_bytes: int) -> bytes:
        with failures_named():
            sandbox = await self._used(sandbox_id)
            content = bytearray()
            async with await sandbox.files.read(path, format="stream") as pieces:
                async for piece in pieces:
                    content += piece
                    if len(content) > max_bytes:
                        raise PermanentFailure(TOO_LARGE, f"{path} is over {max_bytes} bytes")
            return bytes(content)

    async def write(self, sandbox_id: str, path: str, data: bytes) -> None:
        with failures_named():
            await (await self._used(sandbox_id)).files.write(path, data, use_octet_stream=True)

    async def list(self, sandbox_id: str, path: str, *, depth: int = 1) -> list[SandboxFile]:
        with failures_named():
            entries = await (await self._used(sandbox_id)).files.list(path, depth=depth)
            return [file for entry in entries if (file := _file(entry)) is not None]

    async def pause(self, sandbox_id: str) -> None:
        with failures_named():
            await AsyncSandbox.pause(sandbox_id, **{**self._options, "request_timeout": _PAUSE_TIMEOUT_S})

    async def kill(self, sandbox_id: str) -> None:
        with failures_named():
            await AsyncSandbox.kill(sandbox_id, **self._options)

    async def exists(self, sandbox_id: str) -> bool:
        with failures_named():
            try:
                await AsyncSandbox.get_info(sandbox_id, **self._options)
            except SandboxNotFoundException:
                return False
            return True

    async def _used(self, sandbox_id: str, for_s: float = 0) -> AsyncSandbox:
        """Resumed when it was paused, and not to be paused before this use is over and `idle_s` have passed."""
        return await AsyncSandbox.connect(sandbox_id, timeout=int(for_s + self._idle_s), **self._options)


def _file(entry: EntryInfo) -> SandboxFile | None:
    """None for what is no file, folder or link."""
    kind = _KINDS.get(entry.type) if entry.type is not None else None
    match kind:
        case "file" | "dir" | "symlink":
            return SandboxFile(entry.path, kind, entry.size)
    return None
