"""`POST /v1/documents`: files go to the blob store while they arrive, fields may come before or after them."""

from __future__ import annotations

import posixpath
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from pydantic import TypeAdapter, ValidationError

from schemas.document_requests import Reader, Tag
from schemas.errors import InvalidRequest, TooLarge
from schemas.identifiers import new_id
from schemas.settings import LimitSettings
from services.api.multipart_stream import MultipartStream, Part
from services.container import BlobPort
from services.documents.clean_text import one_line

_SINGLE = frozenset({"space", "external_id", "title"})
_REPEATED = frozenset({"readers", "tags"})
_READERS: TypeAdapter[list[str]] = TypeAdapter(list[Reader])
_TAGS: TypeAdapter[list[str]] = TypeAdapter(list[Tag])


@dataclass
class ReceivedFile:
    """One file as it was kept; `error` says why it was not."""

    name: str
    media_type: str | None
    blob_key: str
    bytes: int = 0
    sha256: str | None = None
    error: dict[str, str] | None = None


@dataclass
class UploadForm:
    """The whole form. `readers` and `tags` are null when they were not sent."""

    files: list[ReceivedFile] = field(default_factory=list)
    space: str = ""
    external_id: str | None = None
    title: str | None = None
    readers: list[str] | None = None
    tags: list[str] | None = None

    def digest(self) -> dict[str, object]:
        """What the form asks for, without boundary and blob keys."""
        files = [[each.name, each.media_type, each.sha256, each.error] for each in self.files]
        return {**vars(self), "files": files}


async def read_upload_form(
    content_type: str, body: AsyncIterator[bytes], *, tenant: str, blobs: BlobPort, limits: LimitSettings
) -> UploadForm:
    """Raises InvalidRequest for what the form lacks, after dropping what it had stored."""
    form, fields = UploadForm(), dict[str, list[str]]()
    stream = MultipartStream(content_type, body)
    try:
        while (part := await stream.next_part()) is not None:
            if part.name == "file":
                if len(form.files) >= limits.files_per_request:
                    raise TooLarge(
                        f"At most {limits.files_per_request} files at once (PERDURE_LIMITS__FILES_PER_REQUEST)."
                    )
                form.files.append(await _keep(part, stream, tenant, blobs, limits))
            elif part.name in _SINGLE | _REPEATED:
                fields.setdefault(part.name, []).append(await stream.text())
            else:
                raise InvalidRequest(f"The form has no field '{part.name}'.", field=part.name)
        _fill(form, fields)
    except BaseException:
        await drop(form.files, blobs)
        raise
    return form


async def drop(files: list[ReceivedFile], blobs: BlobPort) -> None:
    """Removes blobs that no row will name."""
    for each in files:
        await blobs.delete(each.blob_key)


async def _keep(
    part: Part, stream: MultipartStream, tenant: str, blobs: BlobPort, limits: LimitSettings
) -> ReceivedFile:
    media_type = part.media_type if part.media_type != "application/octet-stream" else None
    kept = ReceivedFile(external_id_of(part.filename or ""), media_type, f"{tenant}/uploads/{new_id()}")
    try:
        kept.bytes, kept.sha256 = await blobs.put_stream(kept.blob_key, stream.chunks(), limits.upload_bytes)
    except TooLarge as error:
        kept.error = {"code": "too_large", "detail": error.detail}
        await _skip_rest(stream, limits.upload_bytes)
    if kept.error is None and kept.bytes == 0:
        kept.error = {"code": "empty", "detail": "The file is empty."}
    return kept


async def _skip_rest(stream: MultipartStream, most_bytes: int) -> None:
    """The files after a file that is too large are still wanted, but not at any price."""
    skipped = 0
    async for chunk in stream.chunks():
        skipped += len(chunk)
        if skipped > most_bytes:
            raise TooLarge(f"A file is over {most_bytes} bytes by far (PERDURE_LIMITS__UPLOAD_BYTES).")


def external_id_of(filename: str) -> str:
    """The path as given, with `/` between its parts, and without a root or steps upward (NFC)."""
    path = one_line(filename.replace("\\", "/"))
    return posixpath.normpath("/" + path).lstrip("/") or "unnamed"


def _fill(form: UploadForm, fields: dict[str, list[str]]) -> None:
    for name in _SINGLE & fields.keys():
        if len(fields[name]) > 1:
            raise InvalidRequest(f"The field '{name}' was sent more than once.", field=name)
    if not form.files:
        raise InvalidRequest("Send at least one part named 'file'.", field="file")
    form.space = fields.get("space", [""])[0]
    if not form.space:
        raise InvalidRequest("The field 'space' is missing.", field="space")
    form.external_id = one_line(fields["external_id"][0]) if "external_id" in fields else None
    if form.external_id is not None and len(form.files) > 1:
        raise InvalidRequest("An external_id names one file; send one, or leave it out.", field="external_id")
    form.title = one_line(fields["title"][0]) or None if "title" in fields else None
    form.readers = _checked(_READERS, "readers", fields)
    form.tags = _checked(_TAGS, "tags", fields)


def _checked(shape: TypeAdapter[list[str]], name: str, fields: dict[str, list[str]]) -> list[str] | None:
    """A single empty value means none at all: a form cannot send an empty list otherwise."""
    if name not in fields:
        return None
    values = [] if fields[name] == [""] else fields[name]
    try:
        return list(dict.fromkeys(shape.validate_python(values)))
    except ValidationError as error:
        raise InvalidRequest(f"{name}: {error.errors()[0]['msg']}.", field=name) from error
