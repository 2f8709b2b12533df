"""Deletes blobs that no row names: of uploads that were refused, of versions whose row was never written."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from services.stores import leftovers
from services.stores.database import Database

GRACE_S = 3600.0
PAGE = 500
SWEPT = re.compile(r"(?P<tenant>[^/]+)/(?:uploads/.+|artifacts/.+|documents/(?P<document>[^/]+)/(?P<version>\d+)/.+)")
"""Only these kinds of keys belong to documents and runs; whatever else is stored is somebody else's to sweep."""


class Blobs(Protocol):
    """What is needed of `services/stores/blob_store.py`."""

    def list(self, prefix: str = "") -> AsyncIterator[str]: ...
    async def delete(self, key: str) -> None: ...


class BlobSweep:
    """A blob is written before the row that names it, so one without a row is left alone until it was seen so for an hour.

    Stores do not tell when a blob was written: the hour begins when this sweep first sees it.
    """

    def __init__(self, database: Database, blobs: Blobs) -> None:
        self._database = database
        self._blobs = blobs
        self._unnamed_since: dict[str, float] = {}

    async def sweep(self, now_s: float) -> int:
        """How many were deleted. `now_s` is any clock that does not go backwards."""
        unnamed: dict[str, float] = {}
        page: list[str] = []
        async for key in self._blobs.list():
            if SWEPT.fullmatch(key):
                page.append(key)
            if len(page) == PAGE:
                await self._sort_out(page, now_s, unnamed)
                page = []
        await self._sort_out(page, now_s, unnamed)
        old = [key for key, since_s in unnamed.items() if now_s - since_s >= GRACE_S]
        for key in old:
            await self._delete_unnamed(key)
            del unnamed[key]
        self._unnamed_since = unnamed
        return len(old)

    async def _sort_out(self, keys: Sequence[str], now_s: float, unnamed: dict[str, float]) -> None:
        if keys:
            for key in set(keys) - await self._named(keys):
                unnamed[key] = self._unnamed_since.get(key, now_s)

    async def _delete_unnamed(self, key: str) -> None:
        """Looked at once more: a slow upload may have got its row at last."""
        if not await self._named([key]):
            await self._blobs.delete(key)

    async def _named(self, keys: Sequence[str]) -> set[str]:
        """Keys that a version names, or that lie in the folder of a version that exists."""
        owners = {key: owner for key in keys if (owner := _owner(key)) is not None}
        async with self._database.every_tenant("the blobs of all tenants lie in one store") as transaction:
            named = await leftovers.named_blobs(transaction, keys)
            existing = await leftovers.existing_versions(transaction, sorted(set(owners.values())))
        return named | {key for key, owner in owners.items() if owner in existing}


def _owner(key: str) -> tuple[str, int] | None:
    """The version in whose folder the key lies."""
    match = SWEPT.fullmatch(key)
    if match is None or match["document"] is None:
        return None
    return match["document"], int(match["version"])
