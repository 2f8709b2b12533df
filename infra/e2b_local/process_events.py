"""A command as the stream of events that the SDK follows: start, output, end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Literal

from connectrpc.code import Code
from connectrpc.errors import ConnectError
from e2b.envd.process import process_pb as pb
from protobuf import Oneof

from infra.e2b_local.command import Command, Piece
from schemas.sandboxes import tell_end

_KEEPALIVE_S = 50.0

_Stdout = Oneof[Literal["stdout"], bytes]
_Stderr = Oneof[Literal["stderr"], bytes]
_Start = Oneof[Literal["start"], pb.ProcessEvent.StartEvent]
_Data = Oneof[Literal["data"], pb.ProcessEvent.DataEvent]
_End = Oneof[Literal["end"], pb.ProcessEvent.EndEvent]
_KeepAlive = Oneof[Literal["keepalive"], pb.ProcessEvent.KeepAlive]


async def process_events(command: Command) -> AsyncGenerator[pb.ProcessEvent, None]:
    """DEADLINE_EXCEEDED in place of the end where time ran out: so the SDK knows it."""
    with command.listen() as queue:
        start: _Start = Oneof("start", pb.ProcessEvent.StartEvent(pid=command.pid))
        yield pb.ProcessEvent(event=start)
        while True:
            try:
                piece = await asyncio.wait_for(queue.get(), _KEEPALIVE_S)
            except TimeoutError:
                alive: _KeepAlive = Oneof("keepalive", pb.ProcessEvent.KeepAlive())
                yield pb.ProcessEvent(event=alive)
                continue
            if piece is None:
                break
            yield _data_event(piece)
    yield _end_event(command)


def _data_event(piece: Piece) -> pb.ProcessEvent:
    stream, written = piece
    stdout: _Stdout = Oneof("stdout", written)
    stderr: _Stderr = Oneof("stderr", written)
    output = stdout if stream == "stdout" else stderr
    data: _Data = Oneof("data", pb.ProcessEvent.DataEvent(output=output))
    return pb.ProcessEvent(event=data)


def _end_event(command: Command) -> pb.ProcessEvent:
    """`error` says how it ended unless it exited with 0; `exit_code` -1 is that of one that did not exit."""
    end = command.end
    assert end is not None, "listeners are told of the end after it is set"
    if end.ended == "timeout":
        raise ConnectError(Code.DEADLINE_EXCEEDED, tell_end("timeout", end.detail))
    exited = end.exit_code >= 0
    reason = tell_end(end.ended, end.detail) if end.ended != "exited" else f"exit status {end.exit_code}"
    event = pb.ProcessEvent.EndEvent(
        exit_code=end.exit_code,
        exited=exited,
        status=f"exit status {end.exit_code}" if exited else reason,
        error=None if end.exit_code == 0 else reason,
    )
    final: _End = Oneof("end", event)
    return pb.ProcessEvent(event=final)
