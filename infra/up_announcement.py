"""What `perdure up` tells: one JSON line (contract: Process), a file for the CLI, and words for a person."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import BaseModel


class UpAnnouncement(BaseModel):
    """The contract's line of `perdure up --json`; the same is kept in `run/up.json` while it runs."""

    api_url: str
    temporal_address: str
    temporal_ui_url: str | None
    kafka_bootstrap: str | None
    database_url: str
    data_dir: str
    admin_key_file: str
    pid: int

    def write(self, path: Path) -> None:
        part = path.with_suffix(".part")
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(self.model_dump_json())
        part.replace(path)

    def words(self) -> str:
        lines = [
            "Perdure is up.",
            f"  API and its reference  {self.api_url}  {self.api_url}/docs",
            f"  Temporal UI            {self.temporal_ui_url or self.temporal_address}",
            f"  Kafka                  {self.kafka_bootstrap}",
            f"  Admin key              {self.admin_key_file}",
            f"  Data                   {self.data_dir}",
            "Ctrl-C stops it; unfinished work goes on at the next start.",
        ]
        return "\n".join(lines)
