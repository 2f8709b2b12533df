"""envd's process service: commands started, followed, fed and signalled in the sandbox that the caller's headers name."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from connectrpc.code import Code
from connectrpc.errors import ConnectError
from connectrpc.request import RequestContext
from e2b.envd.process import process_pb as pb
from e2b.envd.process.process_connect import Process
from protobuf import Oneof

from infra.e2b_local.callers import Caller, connect_error, sandbox_of
from infra.e2b_local.cell import CommandRefused
from infra.e2b_local.cell_arguments import base_environment
from infra.e2b_local.cell_process import CellFailed
from infra.e2b_local.command import Command, CommandRequest
from infra.e2b_local.command_end import Cause
from infra.e2b_local.process_events import process_events
from infra.e2b_local.sandbox import Sandbox, TagTaken
from infra.e2b_local.sandboxes import Sandboxes
from infra.e2b_local.workspace_paths import HOME
from schemas.sandboxes import SandboxLimits, tell_end

Context = RequestContext[Any, Any]
_EARLIER_S, _EARLIER_SHARE = 0.1, 0.1
"""By so much a command ends before its caller's own clock: else the caller gives up first and never hears the reason."""


class ProcessService(Process):
    """Errors are ConnectErrors whose text says what to do; see `_started` and `process_events` for those of a command."""

    def __init__(self, sandboxes: Sandboxes) -> None:
        self._sandboxes = sandboxes

    async def list(self, request: pb.ListRequest, ctx: Context, /) -> pb.ListResponse:
        return pb.ListResponse(processes=[_info(command) for command in self._sandbox(ctx).commands])

    async def start(self, request: pb.StartRequest, ctx: Context, /) -> AsyncGenerator[pb.StartResponse, None]:
        if request.pty is not None:
            raise ConnectError(Code.UNIMPLEMENTED, "terminals (pty) are not supported by local sandboxes")
        command = await _started(self._sandbox(ctx), request, ctx.timeout_ms, self._sandboxes.host.limits)
        async with contextlib.aclosing(process_events(command)) as events:
            async for event in events:
                yield pb.StartResponse(event=event)

    async def connect(self, request: pb.ConnectRequest, ctx: Context, /) -> AsyncGenerator[pb.ConnectResponse, None]:
        command = _selected(self._sandbox(ctx), request.process)
        async with contextlib.aclosing(process_events(command)) as events:
            async for event in events:
                yield pb.ConnectResponse(event=event)

    async def send_input(self, request: pb.SendInputRequest, ctx: Context, /) -> pb.SendInputResponse:
        await _feed(_running(self._sandbox(ctx), request.process), request.input)
        return pb.SendInputResponse()

    async def stream_input(
        self, request: AsyncIterator[pb.StreamInputRequest], ctx: Context, /
    ) -> pb.StreamInputResponse:
        sandbox, command = self._sandbox(ctx), None
        async for part in request:
            match part.event:
                case Oneof(value=pb.StreamInputRequest.StartEvent() as start):
                    command = _running(sandbox, start.process)
                case Oneof(value=pb.StreamInputRequest.DataEvent() as data) if command is not None:
                    await _feed(command, data.input)
        return pb.StreamInputResponse()

    async def close_stdin(self, request: pb.CloseStdinRequest, ctx: Context, /) -> pb.CloseStdinResponse:
        _running(self._sandbox(ctx), request.process).input.close()
        return pb.CloseStdinResponse()

    async def send_signal(self, request: pb.SendSignalRequest, ctx: Context, /) -> pb.SendSignalResponse:
        sandbox = self._sandbox(ctx)
        command = _running(sandbox, request.process)
        number = int(request.signal)
        if number not in (signal.SIGTERM, signal.SIGKILL):
            raise ConnectError(Code.INVALID_ARGUMENT, "only SIGTERM and SIGKILL can be sent")
        if number == signal.SIGKILL:
            command.cause = command.cause or Cause("stopped", "it was asked to end (SIGKILL)")
        sandbox.signal(command, number)
        return pb.SendSignalResponse()

    def _sandbox(self, ctx: Context) -> Sandbox:
        try:
            return sandbox_of(ctx.request_headers, self._sandboxes)
        except Caller as error:
            raise connect_error(error) from None


async def _started(
    sandbox: Sandbox, request: pb.StartRequest, timeout_ms: float | None, limits: SandboxLimits
) -> Command:
    """Codes: INVALID_ARGUMENT no such folder, RESOURCE_EXHAUSTED no process left, ALREADY_EXISTS the tag is another's,
    FAILED_PRECONDITION the kernel would not have it."""
    config = request.process
    if config is None or not config.cmd:
        raise ConnectError(Code.INVALID_ARGUMENT, "there is no command to start")
    envs = dict(config.envs)
    if any("\0" in word for word in (config.cmd, *config.args, *envs, *envs.values(), config.cwd)):
        raise ConnectError(Code.INVALID_ARGUMENT, "a command cannot hold a null character")
    seconds, too_slow = _time_for(timeout_ms, limits)
    wanted = CommandRequest(
        program=config.cmd,
        arguments=tuple(config.args),
        envs=envs,
        cwd=config.cwd if config.has_field("cwd") else None,
        tag=request.tag if request.has_field("tag") else None,
        takes_input=request.stdin or not request.has_field("stdin"),
        folder=_folder(config.cwd),
        environment={**base_environment(sandbox.record.id), **sandbox.record.envs, **envs},
        seconds=seconds,
        too_slow=too_slow,
    )
    try:
        return await sandbox.run(wanted)
    except TagTaken as error:
        raise ConnectError(Code.ALREADY_EXISTS, str(error)) from None
    except CellFailed as error:
        raise ConnectError(Code.FAILED_PRECONDITION, f"the sandbox could not be started: {error}") from None
    except CommandRefused as error:
        if error.at_limit:
            raise ConnectError(Code.RESOURCE_EXHAUSTED, tell_end("processes", str(error))) from None
        raise ConnectError(Code.INVALID_ARGUMENT, str(error)) from None


def _time_for(timeout_ms: float | None, limits: SandboxLimits) -> tuple[float, str]:
    """(seconds, what to say when they are over)."""
    asked = None if timeout_ms is None else timeout_ms / 1_000
    if asked is None or asked > limits.command_s:
        return limits.command_s, f"the command did not end within {limits.command_s:g} s (limit command_s)"
    return asked - min(_EARLIER_S, asked * _EARLIER_SHARE), f"the command did not end within {round(asked, 1):g} s"


def _folder(cwd: str) -> str:
    if cwd.startswith("/"):
        return cwd
    return f"{HOME}/{cwd.removeprefix('~').lstrip('/')}".rstrip("/")


def _selected(sandbox: Sandbox, process: pb.ProcessSelector | None) -> Command:
    """Only what was started here can be named: no number reaches any other process of the machine."""
    command = None
    match process.selector if process is not None else None:
        case Oneof(value=int() as pid):
            command = sandbox.command_by_pid(pid)
        case Oneof(value=str() as tag):
            command = sandbox.command_by_tag(tag)
    if command is None:
        raise ConnectError(Code.NOT_FOUND, "there is no such command in this sandbox")
    return command


def _running(sandbox: Sandbox, process: pb.ProcessSelector | None) -> Command:
    """The number of one that has ended may be another's by now."""
    command = _selected(sandbox, process)
    if command.end is not None:
        raise ConnectError(Code.NOT_FOUND, "the command has ended")
    return command


async def _feed(command: Command, given: pb.ProcessInput | None) -> None:
    match given.input if given is not None else None:
        case Oneof(field="stdin", value=data):
            try:
                await command.input.write(data)
            except OSError as error:
                raise ConnectError(Code.FAILED_PRECONDITION, f"the command takes no input: {error}") from None
        case _:
            raise ConnectError(Code.UNIMPLEMENTED, "only a command's standard input can be written to")


def _info(command: Command) -> pb.ProcessInfo:
    request = command.request
    config = pb.ProcessConfig(cmd=request.program, args=[*request.arguments], envs=request.envs, cwd=request.cwd)
    return pb.ProcessInfo(config=config, pid=command.pid, tag=request.tag)
