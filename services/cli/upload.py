"""One file sent as one request, and what the server's refusal means for the others."""

from __future__ import annotations

import mimetypes
import os
from dataclasses import dataclass

from schemas.documents import Receipt, Receipts
from services.cli.client import ApiClient, FormFile, path_of
from services.cli.collect_files import LocalFile
from services.cli.failures import Refusal
from services.cli.ingest_result import IngestResult, not_sent

_REFUSES_ALL = frozenset({401, 403, 404})
"""A key or space that is refused for one file is refused for each."""


@dataclass(frozen=True)
class Destination:
    """Where files go and what each of them gets."""

    space: str
    readers: list[str]
    tags: list[str]


def upload_file(client: ApiClient, destination: Destination, file: LocalFile) -> Receipt | IngestResult:
    """A receipt, or the result when this file is refused or cannot be read. Raises what stops the whole command."""
    fields: dict[str, str | list[str]] = {"space": destination.space, "external_id": file.external_id}
    if destination.readers:
        fields["readers"] = destination.readers
    if destination.tags:
        fields["tags"] = destination.tags
    name = os.fsencode(file.path.name).decode("utf-8", errors="replace")
    media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    try:
        with file.path.open("rb") as content:
            reply = client.upload(path_of("documents"), fields, FormFile(name, content, media_type))
    except OSError as error:
        return not_sent(file.external_id, "unreadable", f"{file.path} cannot be read: {error.strerror}.")
    except Refusal as refusal:
        if refusal.status in _REFUSES_ALL:
            raise
        return _refused(file, refusal)
    return Receipts.model_validate(reply).documents[0]


def _refused(file: LocalFile, refusal: Refusal) -> IngestResult:
    """422 for a request of one file carries that file's own reason, when it is about the file."""
    for document in refusal.problem.get("documents") or ():
        if isinstance(document, dict) and isinstance(document.get("error"), dict):
            result = not_sent(file.external_id, "", "")
            return result.model_copy(update={"error": document["error"], "outcome": "rejected"})
    return not_sent(file.external_id, refusal.kind, refusal.detail)
