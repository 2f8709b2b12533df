"""A parser's process: `python -m services.documents.parser_child`, one file after another, frames over its pipes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import BinaryIO

from schemas.errors import PermanentFailure
from schemas.settings import ParsingSettings
from services.documents.bounds import bound_reached
from services.documents.parse_file import parse_file
from services.documents.parser_confinement import allow_cpu_seconds, confine
from services.documents.parser_frames import HEADER, ChildSetup, ParseReply, ParseRequest, frame


def main() -> None:
    # whatever a library prints must not end up between the frames
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    setup = ChildSetup.model_validate_json(_read_frame(requests))
    confine(setup.limits, setup.parent)
    _write(replies, frame(ParseReply()))
    while body := _read_frame(requests):
        _write(replies, _answer(ParseRequest.model_validate_json(body), setup.limits))


def _answer(request: ParseRequest, limits: ParsingSettings) -> bytes:
    allow_cpu_seconds(limits.cpu_s)
    try:
        scratch = Path(request.scratch)
        document = parse_file(Path(request.path), request.name, request.media_type, scratch, limits, request.depth)
        return frame(ParseReply(document=document))
    except PermanentFailure as failure:
        return frame(ParseReply(code=failure.code, detail=failure.detail))
    except MemoryError:
        # parse_file says so itself unless the reply is what does not fit
        what = f"the text of {request.name!r} takes too much memory"
        bound = bound_reached("memory", what, "memory_mb", limits.memory_mb)
        return frame(ParseReply(code=bound.code, detail=bound.detail))


def _read_frame(stream: BinaryIO) -> bytes:
    """The next frame's body; empty at the end."""
    header = stream.read(HEADER.size)
    return stream.read(HEADER.unpack(header)[0]) if len(header) == HEADER.size else b""


def _write(stream: BinaryIO, data: bytes) -> None:
    stream.write(data)
    stream.flush()


if __name__ == "__main__":
    main()
