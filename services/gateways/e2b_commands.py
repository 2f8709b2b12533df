"""One command in an E2B sandbox, followed to its end over envd's process service.

The SDK's own `commands.run` knows no tags, by which a command is found again after its caller has died; the protocol does.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from typing import Literal

from connectrpc.code import Code
from connectrpc.errors import ConnectError
from e2b import AsyncSandbox
from e2b.envd.client_async import as_stream, create_rpc_client
from e2b.envd.process import process_pb as pb
from e2b.envd.process.process_connect import ProcessClient
from e2b.envd.rpc import is_transport_failure
from e2b.envd.utils import timeout_to_ms
from protobuf import Oneof

from schemas.errors import TransientFailure
from schemas.sandboxes import Ended, read_end
from services.gateways.command_output import CommandOutput
from services.gateways.e2b_failures import LOST, ListenerFailed
from services.gateways.sandbox import CommandResult, OnOutput, Stream

Events = AsyncGenerator[pb.StartResponse | pb.ConnectResponse, None]
_ByTag = Oneof[Literal["tag"], str]


class E2bCommand:
    """Errors of the protocol go through as ConnectError, except where they say how the command ended."""

    def __init__(self, sandbox: AsyncSandbox, tag: str | None, kept_characters: int) -> None:
        self._rpc = create_rpc_client(ProcessClient, sandbox.envd_api_url, sandbox.connection_config)
        self._tag = tag
        self._outputs = {"stdout": CommandOutput(kept_characters), "stderr": CommandOutput(kept_characters)}

    async def run(self, command: str, timeout_s: float, on_output: OnOutput | None) -> CommandResult:
        """Starts it, or follows the one with this tag."""
        try:
            if self._tag is not None:
                with contextlib.suppress(_NoSuchCommand):
                    return await self._follow(self._attached(timeout_s), on_output)
            try:
                return await self._follow(self._started(command, timeout_s), on_output)
            except ConnectError as error:
                if error.code is not Code.ALREADY_EXISTS:
                    raise
            try:
                return await self._follow(self._attached(timeout_s), on_output)  # another caller was quicker
            except _NoSuchCommand:
                raise TransientFailure(LOST, "the command ended before it could be followed") from None
        except ConnectError as error:
            if (end := _end_in(error, timeout_s)) is None:
                raise
            return self._result(None, *end)

    async def stop(self) -> bool:
        assert self._tag is not None, "only a tagged command can be named"
        request = pb.SendSignalRequest(process=_selector(self._tag), signal=pb.Signal.SIGKILL)
        try:
            await self._rpc.send_signal(request, timeout_ms=timeout_to_ms(60))
        except ConnectError as error:
            if error.code is Code.NOT_FOUND:
                return False
            raise
        return True

    def _started(self, command: str, timeout_s: float) -> Events:
        config = pb.ProcessConfig(cmd="/bin/bash", args=["-l", "-o", "pipefail", "-c", command])
        request = pb.StartRequest(process=config, stdin=False, tag=self._tag)
        return as_stream(self._rpc.start(request, timeout_ms=timeout_to_ms(timeout_s)))

    async def _attached(self, timeout_s: float) -> Events:
        assert self._tag is not None, "only a tagged command can be found again"
        request = pb.ConnectRequest(process=_selector(self._tag))
        events = as_stream(self._rpc.connect(request, timeout_ms=timeout_to_ms(timeout_s)))
        async with contextlib.aclosing(events):
            try:
                yield await anext(events)
            except ConnectError as error:
                if error.code is Code.NOT_FOUND:
                    raise _NoSuchCommand from error
                raise
            async for event in events:
                yield event

    async def _follow(self, events: Events, on_output: OnOutput | None) -> CommandResult:
        async with contextlib.aclosing(events):
            async for response in events:
                match response.event.event if response.event is not None else None:
                    case Oneof(value=pb.ProcessEvent.DataEvent() as data):
                        match data.output:
                            case Oneof(field="stdout" | "stderr" as stream, value=piece):
                                await self._take(stream, piece, on_output)
                    case Oneof(value=pb.ProcessEvent.EndEvent() as end):
                        for stream in ("stdout", "stderr"):
                            await self._take(stream, b"", on_output, final=True)
                        return self._ended(end)
        raise ConnectError(Code.UNAVAILABLE, "the sandbox server ended the stream before the command ended")

    async def _take(self, stream: Stream, piece: bytes, on_output: OnOutput | None, *, final: bool = False) -> None:
        text = self._outputs[stream].add(piece, final=final)
        if text and on_output is not None:
            try:
                await on_output(stream, text)
            except Exception as error:
                raise ListenerFailed from error

    def _ended(self, end: pb.ProcessEvent.EndEvent) -> CommandResult:
        reason = read_end(end.error) if end.has_field("error") else None
        exit_code = end.exit_code if end.exit_code >= 0 else None
        if reason is not None:
            return self._result(exit_code, *reason)
        return self._result(exit_code, "exited" if exit_code is not None else "signal", end.error)

    def _result(self, exit_code: int | None, ended: Ended, detail: str) -> CommandResult:
        stdout, stderr = self._outputs["stdout"], self._outputs["stderr"]
        left_out = stdout.left_out + stderr.left_out
        return CommandResult(exit_code, stdout.text(), stderr.text(), ended, detail, left_out)


class _NoSuchCommand(Exception):
    """No command with this tag runs."""


def _end_in(error: ConnectError, timeout_s: float) -> tuple[Ended, str] | None:
    """How the command ended, when that is what the error tells."""
    if error.code is Code.DEADLINE_EXCEEDED:
        return read_end(error.message) or ("timeout", f"the command did not end within {timeout_s:g} s")
    return None if is_transport_failure(error) else read_end(error.message)


def _selector(tag: str) -> pb.ProcessSelector:
    by_tag: _ByTag = Oneof("tag", tag)
    return pb.ProcessSelector(selector=by_tag)
