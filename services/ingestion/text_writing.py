"""Documents written as text by an agent: the same door as uploads, in the transaction that records the agent's call."""

from __future__ import annotations

import hashlib

from schemas.access import Actor
from schemas.documents import UPLOAD_SOURCE, Upload
from schemas.errors import Conflict
from schemas.written_documents import WriteTarget, Written
from services.documents.clean_text import clean_text, one_line
from services.ingestion.reception import Reception
from services.stores import document_views, documents_store, spaces_store
from services.stores.blob_store import BlobStore
from services.stores.database import Database, Transaction

MEDIA_TYPE = "text/markdown"


class TextWriting:
    """Every method checks rights by SQL of this moment and raises the Problem that says what is missing."""

    def __init__(self, database: Database, blobs: BlobStore, reception: Reception) -> None:
        self._database = database
        self._blobs = blobs
        self._reception = reception

    async def target(self, actor: Actor, space: str, external_id: str) -> WriteTarget:
        """NotFound, Forbidden, or Conflict("name_taken") for a document that the actor may not read."""
        async with self._database.begin(actor.tenant) as transaction:
            found = await spaces_store.resolve(transaction, actor, space, "contributor")
            space_id, name = str(found["id"]), one_line(external_id)
            existing = await documents_store.by_identity(transaction, space_id, UPLOAD_SOURCE, name)
            if existing is None:
                return WriteTarget(space_id, None, None)
            if not await documents_store.is_readable(transaction, actor, existing["id"]):
                raise Conflict("A document of this name is there already.", type="name_taken")
            stored = await document_views.stored_file(transaction, actor, existing["id"], None)
        text = ""
        if stored is not None and stored.text_key is not None:
            text = (await self._blobs.get(stored.text_key)).decode()
        return WriteTarget(space_id, str(existing["id"]), text)

    async def keep(self, key: str, text: str) -> None:
        await self._blobs.put(key, clean_text(text).encode())

    async def write(
        self, transaction: Transaction, actor: Actor, key: str, space: str, external_id: str, title: str, text: str
    ) -> Written:
        found = await spaces_store.resolve(transaction, actor, space, "contributor")
        data = clean_text(text).encode()
        upload = Upload(
            space_id=str(found["id"]),
            external_id=one_line(external_id),
            title=one_line(title) or None,
            blob_key=key,
            sha256=hashlib.sha256(data).hexdigest(),
            bytes=len(data),
            media_type=MEDIA_TYPE,
        )
        receipt = await self._reception.take(transaction, actor, upload)
        return Written(str(receipt.document_id), int(receipt.version or 0), receipt.outcome)
