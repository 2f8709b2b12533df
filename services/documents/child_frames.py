"""What a pool and its children say to each other: frames of 4 bytes of length and that much JSON."""

from __future__ import annotations

import struct

from pydantic import BaseModel

from schemas.settings import ParsingSettings

HEADER = struct.Struct(">I")


class ChildSetup(BaseModel):
    """The first frame to a child. `parent` is the process it must not outlive."""

    limits: ParsingSettings
    parent: int


class ChildRequest(BaseModel):
    """What a child is asked; `name` is the document's, for people."""

    name: str


class ChildReply(BaseModel):
    """The code and detail of a PermanentFailure; without a code all went well. Kinds of work add what they give."""

    code: str | None = None
    detail: str = ""


def frame(message: BaseModel) -> bytes:
    body = message.model_dump_json().encode()
    return HEADER.pack(len(body)) + body
