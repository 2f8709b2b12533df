"""Ids are opaque strings. New ones are UUIDv7 (RFC 9562), so they sort by the time they were made."""

from __future__ import annotations

import secrets
import time
import uuid


def new_id() -> str:
    """A fresh UUIDv7: 48 bits of Unix milliseconds, then version, variant and 74 random bits."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds << 80) | secrets.randbits(80)
    value = (value & ~(0xF << 76)) | (0x7 << 76)
    value = (value & ~(0x3 << 62)) | (0x2 << 62)
    return str(uuid.UUID(int=value))


def document_stream(document_id: str) -> str:
    return f"document:{document_id}"


def run_stream(run_id: str) -> str:
    return f"run:{run_id}"


def space_stream(space_id: str) -> str:
    return f"space:{space_id}"


def session_stream(session_id: str) -> str:
    return f"session:{session_id}"


def approval_stream(approval_id: str) -> str:
    return f"approval:{approval_id}"
