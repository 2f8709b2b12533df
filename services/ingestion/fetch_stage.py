"""Stage fetch: the bytes of a URL, through the guard, into the blob store. Uploads pass it by."""

from __future__ import annotations

from schemas.errors import PermanentFailure
from services.gateways.safe_fetch import SafeFetch
from services.ingestion.version_work import VersionWork
from services.stores import documents_store
from services.stores.blob_store import BlobStore
from services.stores.database import Database


class FetchStage:
    """Brings a URL's bytes in; a version that has bytes already passes."""

    def __init__(self, database: Database, blobs: BlobStore, fetch: SafeFetch) -> None:
        self._database = database
        self._blobs = blobs
        self._fetch = fetch

    async def run(self, work: VersionWork) -> dict[str, int]:
        """Counts: bytes. A page that cannot be had fails the run; its error text never becomes content."""
        async with documents_store.writing(self._database, work.tenant, work.document_id) as transaction:
            version = await documents_store.version(transaction, work.document_id, work.version)
        if version is None or version["url"] is None or version["blob_key"] is not None:
            return {}
        key = f"{work.blob_prefix}/fetched"
        async with self._fetch.get(version["url"]) as fetched:
            size, sha256 = await self._blobs.put_stream(key, fetched.body)
        if not size:
            raise PermanentFailure("empty", "The page is empty")
        data = {
            "version": work.version,
            "blob_key": key,
            "bytes": size,
            "sha256": sha256,
            "media_type": version["media_type"] or fetched.media_type,
            "state": "received",
            "stage": "received",
        }
        async with documents_store.writing(self._database, work.tenant, work.document_id) as transaction:
            await documents_store.append(transaction, work.document_id, "document.staged", data, run_id=work.run_id)
        return {"bytes": size}
