"""Reading documents."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path, Query
from starlette.responses import Response, StreamingResponse

from schemas.documents import ChunkView, DocumentState, DocumentView, HistoryEntry, VersionView
from schemas.errors import NotFound
from services.api.authentication import KeyedRoute, Reader
from services.api.pagination import Page, Paging
from services.api.state import ServingRole
from services.container import BlobPort
from services.stores import document_views, spaces_store
from services.stores.document_views import StoredFile

router = APIRouter(route_class=KeyedRoute, tags=["documents"])
DocumentId = Annotated[str, Path(max_length=200)]
Version = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="A version's number; the live one without it")]
_UNKNOWN = "There is no document with this id that this key can see."


@router.get("/documents")
async def list_documents(
    caller: Reader,
    container: ServingRole,
    paging: Paging,
    space: Annotated[str | None, Query(max_length=1_024)] = None,
    state: DocumentState | None = None,
    tag: Annotated[str | None, Query(max_length=1_024)] = None,
) -> Page[DocumentView]:
    """Documents that this key may read, newest first."""
    async with container.database.begin(caller.actor.tenant) as transaction:
        found = None if space is None else await spaces_store.resolve(transaction, caller.actor, space)
        documents = await document_views.newest_first(
            transaction,
            caller.actor,
            space_id=None if found is None else found["id"],
            state=state,
            tag=tag,
            before=paging.place,
            limit=paging.fetch,
        )
    return paging.page(documents, lambda document: document.id)


@router.get("/documents/{document_id}")
async def get_document(document_id: DocumentId, caller: Reader, container: ServingRole) -> DocumentView:
    async with container.database.begin(caller.actor.tenant) as transaction:
        view = await document_views.get(transaction, caller.actor, document_id)
    if view is None:
        raise NotFound(_UNKNOWN)
    return view


@router.get(
    "/documents/{document_id}/text",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def document_text(
    document_id: DocumentId, caller: Reader, container: ServingRole, version: Version = None
) -> Response:
    """The text of the live version; citations' offsets count its Unicode code points."""
    stored = await _stored(document_id, caller, container, version)
    if stored.text_key is None:
        raise NotFound("This version has no text yet.", version=stored.version)
    headers = {"X-Document-Version": str(stored.version)}
    return await _streamed(container.blobs, stored.text_key, "text/plain; charset=utf-8", headers)


@router.get(
    "/documents/{document_id}/file",
    response_class=StreamingResponse,
    responses={200: {"content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}},
)
async def document_file(
    document_id: DocumentId, caller: Reader, container: ServingRole, version: Version = None
) -> Response:
    """The original bytes of the live version, or of the newest while none is live."""
    stored = await _stored(document_id, caller, container, version)
    if stored.blob_key is None:
        raise NotFound("This version has no file: it was not fetched yet.", version=stored.version)
    name = quote((stored.external_id or "file").rpartition("/")[2], safe="")
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "X-Document-Version": str(stored.version),
    }
    return await _streamed(container.blobs, stored.blob_key, stored.media_type or "application/octet-stream", headers)


@router.get("/documents/{document_id}/chunks")
async def document_chunks(
    document_id: DocumentId, caller: Reader, container: ServingRole, paging: Paging, version: Version = None
) -> Page[ChunkView]:
    """The chunks of a version, in the order of its text."""
    stored = await _stored(document_id, caller, container, version)
    async with container.database.begin(caller.actor.tenant) as transaction:
        chunks = await document_views.chunks_after(
            transaction, caller.actor, document_id, stored.version, paging.after_number(), paging.fetch
        )
    return paging.page(chunks, lambda chunk: chunk.ordinal)


@router.get("/documents/{document_id}/versions")
async def document_versions(
    document_id: DocumentId, caller: Reader, container: ServingRole, paging: Paging
) -> Page[VersionView]:
    """Newest first."""
    async with container.database.begin(caller.actor.tenant) as transaction:
        if await document_views.get(transaction, caller.actor, document_id) is None:
            raise NotFound(_UNKNOWN)
        versions = await document_views.versions_before(
            transaction, caller.actor, document_id, paging.after_number(), paging.fetch
        )
    return paging.page(versions, lambda version: version.version)


@router.get("/documents/{document_id}/history")
async def document_history(
    document_id: DocumentId, caller: Reader, container: ServingRole, paging: Paging
) -> Page[HistoryEntry]:
    """Every event of the document, oldest first, without gaps."""
    async with container.database.begin(caller.actor.tenant) as transaction:
        history = await document_views.history_after(
            transaction, caller.actor, document_id, paging.after_number() or 0, paging.fetch
        )
    if history is None:
        raise NotFound(_UNKNOWN)
    return paging.page(history, lambda entry: entry.stream_version)


async def _stored(document_id: str, caller: Reader, container: ServingRole, version: int | None) -> StoredFile:
    async with container.database.begin(caller.actor.tenant) as transaction:
        stored = await document_views.stored_file(transaction, caller.actor, document_id, version)
    if stored is None:
        raise NotFound("There is no such document or version that this key can see.")
    return stored


async def _streamed(blobs: BlobPort, key: str, media_type: str, headers: dict[str, str]) -> Response:
    """Reads the first piece before the reply begins, so that a missing blob is an error and no broken download."""
    pieces = blobs.stream(key)
    first = await anext(pieces, b"")

    async def body() -> AsyncIterator[bytes]:
        yield first
        async for piece in pieces:
            yield piece

    return StreamingResponse(body(), media_type=media_type, headers={"Cache-Control": "private, no-store", **headers})
