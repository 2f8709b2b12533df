"""What is written down of a sandbox, so that any later server can go on with it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

_FILE = "record.json"
State = Literal["running", "paused"]


class SandboxRecord(BaseModel):
    """`owner` is the user its processes are outside, None for the server's own. Times are seconds since 1970."""

    model_config = ConfigDict(frozen=True)

    id: str
    template: str
    metadata: dict[str, str]
    envs: dict[str, str]
    token: str
    owner: int | None
    key: str | None
    started_at: float
    end_at: float
    on_timeout: Literal["kill", "pause"]
    state: State

    def write(self, folder: Path) -> None:
        """A kill leaves the old record or the new one, never half of one."""
        draft = folder / f"{_FILE}.draft"
        opened = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(opened, "w", encoding="utf-8") as file:
            file.write(self.model_dump_json())
        draft.replace(folder / _FILE)


def read_record(folder: Path) -> SandboxRecord | None:
    """None when there is none: the sandbox was being made or being removed. ValidationError when it cannot be understood."""
    try:
        return SandboxRecord.model_validate_json((folder / _FILE).read_bytes())
    except FileNotFoundError:
        return None


def forget(folder: Path) -> None:
    """From here on the sandbox is gone, whatever is still there of it."""
    (folder / _FILE).unlink(missing_ok=True)


def new_id() -> str:
    """In the form of E2B's: i and 20 letters or digits."""
    return f"i{secrets.token_hex(10)}"
