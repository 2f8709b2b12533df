"""The life of a pool's child: set up, confined, then one request after another over its pipes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import BinaryIO, TypeVar

from schemas.errors import PermanentFailure
from schemas.settings import ParsingSettings
from services.documents.bounds import bound_reached
from services.documents.child_confinement import allow_cpu_seconds, confine
from services.documents.child_frames import HEADER, ChildReply, ChildRequest, ChildSetup, frame

Request = TypeVar("Request", bound=ChildRequest)


def serve(read: Callable[[bytes], Request], answer: Callable[[Request, ParsingSettings], ChildReply]) -> None:
    """Answers until the input ends. `answer` may raise PermanentFailure; anything else ends the process."""
    # whatever a library prints must not end up between the frames
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    setup = ChildSetup.model_validate_json(_read_frame(requests))
    confine(setup.limits, setup.parent)
    _write(replies, frame(ChildReply()))
    while body := _read_frame(requests):
        request = read(body)
        allow_cpu_seconds(setup.limits.cpu_s)
        _write(replies, _framed(request, answer, setup.limits))


def _framed(
    request: Request, answer: Callable[[Request, ParsingSettings], ChildReply], limits: ParsingSettings
) -> bytes:
    try:
        return frame(answer(request, limits))
    except PermanentFailure as failure:
        return frame(ChildReply(code=failure.code, detail=failure.detail))
    except MemoryError:
        what = f"the text of {request.name!r} takes too much memory"
        bound = bound_reached("memory", what, "memory_mb", limits.memory_mb)
        return frame(ChildReply(code=bound.code, detail=bound.detail))


def _read_frame(stream: BinaryIO) -> bytes:
    """The next frame's body; empty at the end."""
    header = stream.read(HEADER.size)
    return stream.read(HEADER.unpack(header)[0]) if len(header) == HEADER.size else b""


def _write(stream: BinaryIO, data: bytes) -> None:
    stream.write(data)
    stream.flush()
