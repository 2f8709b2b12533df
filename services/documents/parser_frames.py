"""What the parser pool and its children say to each other: frames of 4 bytes of length and that much JSON."""

from __future__ import annotations

import struct

from pydantic import BaseModel

from schemas.parsed_documents import ParsedDocument
from schemas.settings import ParsingSettings

HEADER = struct.Struct(">I")


class ChildSetup(BaseModel):
    """The first frame to a child. `parent` is the process it must not outlive."""

    limits: ParsingSettings
    parent: int


class ParseRequest(BaseModel):
    """What the pool asks of a child."""

    path: str
    name: str
    media_type: str | None
    scratch: str
    depth: int


class ParseReply(BaseModel):
    """A document, or the code and detail of a PermanentFailure, or neither: the child is ready."""

    document: ParsedDocument | None = None
    code: str | None = None
    detail: str = ""


def frame(message: BaseModel) -> bytes:
    body = message.model_dump_json().encode()
    return HEADER.pack(len(body)) + body
