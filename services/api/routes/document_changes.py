"""Sending, changing and removing documents."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from schemas.access import Actor
from schemas.api_replies import ReadersReply, RunAccepted, TagsReply
from schemas.document_requests import ReadersChange, TagsChange, TextDocument, UrlDocument
from schemas.documents import Receipt, Receipts, Upload
from schemas.errors import Conflict, InvalidRequest, Problem
from schemas.identifiers import new_id
from services.api.authentication import KeyedRoute, Writer
from services.api.idempotency import OnceKey
from services.api.routes.documents import DocumentId
from services.api.state import ServingRole
from services.api.upload_form import ReceivedFile, UploadForm, drop, read_upload_form
from services.container import BlobPort, ReceptionPort, Serving
from services.documents.clean_text import clean_text, one_line
from services.stores import spaces_store

router = APIRouter(route_class=KeyedRoute, tags=["documents"])
_TEXTS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
UPLOAD_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file", "space"],
                    "properties": {
                        "file": {"type": "array", "items": {"type": "string", "format": "binary"}, "minItems": 1},
                        "space": {"type": "string", "minLength": 1},
                        "external_id": {"type": "string"},
                        "title": {"type": "string"},
                        "readers": _TEXTS,
                        "tags": _TEXTS,
                    },
                }
            }
        },
    }
}


@router.post("/documents", status_code=202, response_model=Receipts, openapi_extra=UPLOAD_BODY)
async def upload_documents(
    request: Request, caller: Writer, container: ServingRole, once: OnceKey
) -> Receipts | Response:
    """Files as they are; one receipt each. 422 when none of them could be taken."""
    form = await read_upload_form(
        request.headers.get("content-type", ""),
        request.stream(),
        tenant=caller.actor.tenant,
        blobs=container.blobs,
        limits=container.settings.limits,
    )
    taken: set[str] = set()

    async def receive() -> Receipts:
        space_id = await _contributed_space(container, caller.actor, form.space)
        receipts = await _receive_files(container.reception, caller.actor, space_id, form, taken)
        return _unless_all_rejected(receipts)

    async with _dropping(container.blobs, form.files, taken):
        return await once(form.digest(), receive)


@router.post("/documents/text", status_code=202, response_model=Receipts)
async def write_text(
    wanted: TextDocument, caller: Writer, container: ServingRole, once: OnceKey
) -> Receipts | Response:
    """A document written as text. Writing over the same external_id makes a new version."""

    async def receive() -> Receipts:
        actor, title = caller.actor, one_line(wanted.title)
        space_id = await _contributed_space(container, actor, wanted.space)
        external_id = one_line(wanted.external_id or "") or title
        data = clean_text(wanted.text).encode()
        if not data:
            return _unless_all_rejected([_rejected(external_id, "empty", "The text is empty.")])
        key = f"{actor.tenant}/uploads/{new_id()}"
        upload = Upload(
            space_id=space_id,
            external_id=external_id,
            title=title,
            blob_key=key,
            media_type=wanted.media_type or "text/plain",
            readers=wanted.readers,
            tags=wanted.tags,
        )
        kept = ReceivedFile(external_id, upload.media_type, key)
        taken: set[str] = set()
        async with _dropping(container.blobs, [kept], taken):
            size, sha256 = await container.blobs.put_stream(key, _pieces(data), container.settings.limits.upload_bytes)
            sized = upload.model_copy(update={"bytes": size, "sha256": sha256})
            receipt = await container.reception.receive(actor, sized)
            if receipt.run_id is not None:
                taken.add(key)
        return Receipts(documents=[receipt])

    return await once(wanted, receive)


@router.post("/documents/url", status_code=202, response_model=Receipts)
async def add_url(wanted: UrlDocument, caller: Writer, container: ServingRole, once: OnceKey) -> Receipts | Response:
    """A document fetched from the web; whether it can be fetched shows in its run."""

    async def receive() -> Receipts:
        upload = Upload(
            space_id=await _contributed_space(container, caller.actor, wanted.space),
            external_id=one_line(wanted.external_id or "") or wanted.url,
            title=one_line(wanted.title or "") or None,
            url=wanted.url,
            media_type=wanted.media_type,
            readers=wanted.readers,
            tags=wanted.tags,
        )
        return Receipts(documents=[await container.reception.receive(caller.actor, upload)])

    return await once(wanted, receive)


@router.put("/documents/{document_id}/readers")
async def set_readers(
    document_id: DocumentId, change: ReadersChange, caller: Writer, container: ServingRole
) -> ReadersReply:
    """Holds at once, in searches and stored answers alike."""
    readers = list(dict.fromkeys(change.readers))
    await container.reception.set_readers(caller.actor, document_id, readers)
    return ReadersReply(readers=readers)


@router.put("/documents/{document_id}/tags")
async def set_tags(document_id: DocumentId, change: TagsChange, caller: Writer, container: ServingRole) -> TagsReply:
    tags = list(dict.fromkeys(change.tags))
    await container.reception.set_tags(caller.actor, document_id, tags)
    return TagsReply(tags=tags)


@router.post("/documents/{document_id}/retry", status_code=202, response_model=RunAccepted)
async def retry_document(
    document_id: DocumentId, caller: Writer, container: ServingRole, once: OnceKey
) -> RunAccepted | Response:
    """Goes on from the stage that failed."""

    async def retry() -> RunAccepted:
        return RunAccepted(run_id=await container.reception.retry(caller.actor, document_id))

    return await once(None, retry)


@router.post("/documents/{document_id}/cancel", status_code=202, response_model=RunAccepted)
async def cancel_document(
    document_id: DocumentId, caller: Writer, container: ServingRole, once: OnceKey
) -> RunAccepted | Response:
    """Stops the ingest under way; the live version stays."""

    async def cancel() -> RunAccepted:
        return RunAccepted(run_id=await container.reception.cancel(caller.actor, document_id))

    return await once(None, cancel)


@router.delete("/documents/{document_id}", status_code=202)
async def remove_document(document_id: DocumentId, caller: Writer, container: ServingRole) -> RunAccepted:
    """Hidden at once; the run removes it from every store."""
    return RunAccepted(run_id=await container.reception.remove(caller.actor, document_id))


@asynccontextmanager
async def _dropping(blobs: BlobPort, files: list[ReceivedFile], taken: set[str]) -> AsyncIterator[None]:
    """Removes blobs that no row names, once that is sure: after any other failure a row may have been committed."""
    try:
        yield
    except Problem:
        await drop([each for each in files if each.blob_key not in taken], blobs)
        raise
    await drop([each for each in files if each.blob_key not in taken], blobs)


async def _contributed_space(container: Serving, actor: Actor, name: str) -> str:
    async with container.database.begin(actor.tenant) as transaction:
        return str((await spaces_store.resolve(transaction, actor, name, "contributor"))["id"])


async def _receive_files(
    reception: ReceptionPort, actor: Actor, space_id: str, form: UploadForm, taken: set[str]
) -> list[Receipt]:
    """In the order sent. A name that is taken refuses its file; alone, it refuses the request. Fills `taken` blob keys."""
    receipts: list[Receipt] = []
    for kept in form.files:
        external_id = form.external_id or kept.name
        if kept.error is not None:
            receipts.append(_rejected(external_id, **kept.error))
            continue
        try:
            upload = _upload(kept, form, space_id, external_id)
            receipt = await reception.receive(actor, upload, earlier=receipts, last=kept is form.files[-1])
        except Conflict as conflict:
            if len(form.files) == 1:
                raise
            receipts.append(_rejected(external_id, conflict.type, conflict.detail))
            continue
        if receipt.run_id is not None:
            taken.add(kept.blob_key)
        receipts.append(receipt)
    return receipts


def _upload(kept: ReceivedFile, form: UploadForm, space_id: str, external_id: str) -> Upload:
    return Upload(
        space_id=space_id,
        external_id=external_id,
        title=form.title,
        blob_key=kept.blob_key,
        sha256=kept.sha256,
        bytes=kept.bytes,
        media_type=kept.media_type,
        readers=form.readers,
        tags=form.tags,
    )


def _rejected(external_id: str, code: str, detail: str) -> Receipt:
    return Receipt(external_id=external_id, outcome="rejected", error={"code": code, "detail": detail})


def _unless_all_rejected(receipts: list[Receipt]) -> Receipts:
    if all(receipt.outcome == "rejected" for receipt in receipts):
        shown = [receipt.model_dump(mode="json") for receipt in receipts]
        first = receipts[0].error or {}
        raise InvalidRequest(
            f"None of the files was taken; {receipts[0].external_id}: {first.get('detail')}",
            type=str(first.get("code")) if len(receipts) == 1 else "rejected",
            documents=shown,
        )
    return Receipts(documents=receipts)


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    yield data
