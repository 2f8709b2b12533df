"""The first admin's key on disk: written down before it is committed, so no kill can lose it."""

from __future__ import annotations

from pathlib import Path

from infra import private_file
from services.access.api_key import new_key
from services.access.bootstrap import bootstrap
from services.stores.database import Database

FILE_NAME = "admin.key"


async def ensure_admin_key(database: Database, keys: Path) -> Path:
    """The key's file. A half-made one of a killed start is used again, for its key may have been committed."""
    path, pending = keys / FILE_NAME, keys / f"{FILE_NAME}.pending"
    if path.exists():
        return path
    if not pending.exists():
        private_file.write(pending, new_key())
    await bootstrap(database, pending.read_text(encoding="utf-8").strip())
    pending.replace(path)
    return path
