"""Stage parse: the stored bytes become canonical text and blocks, in the blob store; members become documents."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from schemas.access import Actor
from schemas.documents import Upload
from schemas.errors import PermanentFailure
from schemas.parsed_documents import Coverage, ParsedFile, Warning
from services.documents.parser_pool import ParserPool
from services.ingestion.version_work import VersionWork, enter_stage
from services.stores import documents_store, runs_store
from services.stores.blob_store import BlobStore
from services.stores.database import Database, Row

STEP = "parse"
MOST_WARNINGS = 100
MOST_PAGES = 1_000
ReceiveMembers = Callable[[Actor, VersionWork, list[Upload]], Awaitable[None]]


class ParseStage:
    """Needs the parser pool and both stores of truth; `receive_members` takes what a container held."""

    def __init__(self, database: Database, blobs: BlobStore, pool: ParserPool, receive_members: ReceiveMembers) -> None:
        self._database = database
        self._blobs = blobs
        self._pool = pool
        self._receive_members = receive_members

    async def run(self, work: VersionWork) -> dict[str, int]:
        """Counts: blocks, characters, pages, members. PermanentFailure tells why a file gives no text.

        What this run has parsed is not parsed again; a kill before its members were received costs a second parse,
        which tells nothing twice.
        """
        async with documents_store.writing(self._database, work.tenant, work.document_id) as transaction:
            document = await documents_store.require_alive(transaction, work.document_id)
            version = await documents_store.version(transaction, work.document_id, work.version)
            await enter_stage(transaction, work, "parsing")
            stored = await runs_store.step_result(transaction, work.run_id, STEP)
        if stored:
            return dict(stored)
        if version is None or version["blob_key"] is None:
            raise PermanentFailure("corrupt", "The uploaded bytes of this version are not there any more")
        with tempfile.TemporaryDirectory(prefix="perdure-parse-") as folder:
            parsed = await self._parse(work, document, version, Path(folder))
            counts = {
                "blocks": parsed.blocks,
                "characters": parsed.characters,
                "pages": parsed.coverage.pages,
                "members": len(parsed.members),
            }
            if stored is None:
                await self._store(work, document, parsed, {} if parsed.members else counts)
                if not parsed.members:
                    return counts
            await self._receive(work, document, version, parsed)
        async with documents_store.writing(self._database, work.tenant, work.document_id) as transaction:
            await runs_store.store_step(transaction, work.run_id, STEP, counts)
        return counts

    async def _parse(self, work: VersionWork, document: Row, version: Row, folder: Path) -> ParsedFile:
        source = folder / "source"
        scratch = folder / "parsed"
        scratch.mkdir()
        await self._blobs.get_to_file(version["blob_key"], source)
        name = version["url"] or (document["external_id"] or "").rsplit("/", 1)[-1]  # links resolve against a URL
        depth = await self._depth(work, document)
        return await self._pool.parse(source, name, version["media_type"], scratch, depth)

    async def _depth(self, work: VersionWork, document: Row) -> int:
        depth, parent = 0, document["parent_id"]
        if parent is None:
            return depth
        async with self._database.begin(work.tenant) as transaction:
            while parent is not None:
                depth += 1
                row = await documents_store.get(transaction, parent)
                parent = row["parent_id"] if row is not None else None
        return depth

    async def _store(self, work: VersionWork, document: Row, parsed: ParsedFile, result: dict[str, int]) -> None:
        """Blobs first, then the row that names them (invariant 1). An empty `result`: members are still to be received."""
        text_key = f"{work.blob_prefix}/text"
        await self._blobs.put_file(text_key, Path(parsed.text_file))
        await self._blobs.put_file(f"{work.blob_prefix}/canonical.json", Path(parsed.canonical_file))
        data = {
            "version": work.version,
            "text_key": text_key,
            "media_type": parsed.media_type,
            "parser": parsed.parser,
            "warnings": _told(parsed.warnings),
            "coverage": _listed(parsed.coverage).model_dump(),
        }
        if document["title"] is None and parsed.title:
            data["title"] = parsed.title[:1_024]
        async with documents_store.writing(self._database, work.tenant, work.document_id) as transaction:
            await documents_store.append(transaction, work.document_id, "document.parsed", data, run_id=work.run_id)
            await runs_store.store_step(transaction, work.run_id, STEP, result)

    async def _receive(self, work: VersionWork, document: Row, version: Row, parsed: ParsedFile) -> None:
        uploads = []
        for number, member in enumerate(parsed.members):
            key = f"{work.blob_prefix}/members/{number}"
            size, sha256 = await self._blobs.put_file(key, Path(member.file))
            uploads.append(
                Upload(
                    space_id=document["space_id"],
                    external_id=f"{document['external_id']}/{member.path}",
                    source=document["source"],
                    parent_id=work.document_id,
                    blob_key=key,
                    sha256=sha256,
                    bytes=size,
                    media_type=member.media_type,
                    readers=document["readers"],
                    tags=document["tags"],
                )
            )
        actor = Actor(tenant=work.tenant, user=document["owner"] or "")
        await self._receive_members(actor, work, uploads)


def _told(warnings: list[Warning]) -> list[dict[str, object]]:
    """At most MOST_WARNINGS of them: they go into an event. The last says how many more there are."""
    told = [warning.model_dump() for warning in warnings[:MOST_WARNINGS]]
    left = len(warnings) - len(told)
    if left:
        told.append(Warning(code="more_warnings", detail=f"{left} more warnings are not listed").model_dump())
    return told


def _listed(coverage: Coverage) -> Coverage:
    """The counts are always right; the list of pages is cut, like the warnings."""
    return coverage.model_copy(update={"pages_without_text": coverage.pages_without_text[:MOST_PAGES]})
