"""The key that signs decision links on one machine, made at the first start and kept: links outlive a restart."""

from __future__ import annotations

import secrets
from pathlib import Path

from pydantic import SecretStr

from infra import private_file
from schemas.settings import Settings

FILE_NAME = "links.key"


def with_link_key(settings: Settings, keys: Path) -> Settings:
    """The settings with the key of this data directory, where none is given."""
    if settings.agents.link_keys is not None:
        return settings
    path = keys / FILE_NAME
    if not path.exists():
        private_file.write(path, secrets.token_urlsafe(32))
    key = SecretStr(path.read_text(encoding="utf-8").strip())
    return settings.model_copy(update={"agents": settings.agents.model_copy(update={"link_keys": key})})
