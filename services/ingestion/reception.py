"""The door: what callers send becomes documents, versions and runs, each in one transaction with its events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from schemas.access import SPACE_READERS, Actor
from schemas.api_replies import RunAccepted
from schemas.documents import Outcome, Receipt, Receipts, Upload
from schemas.domain_events import EventDraft
from schemas.errors import Conflict, Forbidden, InvalidRequest, NotFound
from schemas.identifiers import new_id, run_stream, space_stream
from schemas.settings import LimitSettings
from services.ingestion.run_queue import CurrentTrace, RunQueue
from services.stores import documents_store, event_log, idempotency_store, runs_store, spaces_store
from services.stores.database import Database, Row, Transaction

DeliverHead = Callable[[str, str], Awaitable[None]]
"""Hands the head row of a stream to Temporal right after the commit; the relay does it when this fails."""


class Reception:
    """Accepts uploads and the verbs on documents. Every method checks rights by SQL of this moment."""

    def __init__(
        self, database: Database, deliver_head: DeliverHead, limits: LimitSettings, trace: CurrentTrace
    ) -> None:
        self._database = database
        self._deliver_head = deliver_head
        self._limits = limits
        self._trace = trace
        self._queue = RunQueue(trace)

    async def receive(
        self, actor: Actor, upload: Upload, *, earlier: Sequence[Receipt] = (), last: bool = True
    ) -> Receipt:
        """Raises NotFound, Forbidden or Conflict("name_taken") before anything is written for it.

        `earlier` receipts of the same request, and whether this is its `last` document: with that one its reply is stored, so
        that a request that is sent again after a kill gets it.
        """
        async with self._database.begin(actor.tenant) as transaction:
            await spaces_store.resolve(transaction, actor, upload.space_id, "contributor")
            receipt = await self.take(transaction, actor, upload)
            if last:
                await idempotency_store.complete(transaction, Receipts(documents=[*earlier, receipt]))
        await self._start(receipt.run_id)
        return receipt

    async def take(self, transaction: Transaction, actor: Actor, upload: Upload, *, trusted: bool = False) -> Receipt:
        """Within the caller's transaction: a new document, a new version, or nothing new. The name is locked first.

        `trusted` uploads come from the system (members of a container) and may replace what the owner cannot read now.
        """
        self._check(upload)
        if upload.parent_id is not None:
            await documents_store.keep_alive(transaction, upload.parent_id)
        await transaction.lock(f"name:{upload.space_id}:{upload.source}:{upload.external_id}")
        if not await documents_store.space_is_living(transaction, upload.space_id):
            raise NotFound(f"There is no space '{upload.space_id}' that this key can see.", space=upload.space_id)
        existing = await documents_store.by_identity(transaction, upload.space_id, upload.source, upload.external_id)
        if existing is None:
            return await self._write_version(transaction, actor, upload, new_id(), 1, "created")
        if not trusted and not await documents_store.is_readable(transaction, actor, existing["id"]):
            raise Conflict("A document of this name is there already.", type="name_taken")
        newest = await documents_store.version(transaction, existing["id"], existing["newest_version"])
        if newest is not None and _same_bytes(newest, upload):
            await self._apply_metadata(transaction, actor, existing, upload)
            return _receipt(existing, upload, None, "unchanged")
        number = existing["newest_version"] + 1
        receipt = await self._write_version(transaction, actor, upload, existing["id"], number, "updated", existing)
        await self._apply_metadata(transaction, actor, existing, upload.model_copy(update={"title": None}))
        return receipt

    def _check(self, upload: Upload) -> None:
        if not upload.external_id or len(upload.external_id) > self._limits.name_chars:
            limit = f"PERDURE_LIMITS__NAME_CHARS={self._limits.name_chars}"
            raise InvalidRequest(f"external_id must have 1 to {self._limits.name_chars} characters ({limit}).")
        if len(upload.tags or []) > self._limits.tags:
            raise InvalidRequest(f"At most {self._limits.tags} tags (PERDURE_LIMITS__TAGS).")
        check_readers(upload.readers)

    async def _write_version(
        self,
        transaction: Transaction,
        actor: Actor,
        upload: Upload,
        document_id: str,
        number: int,
        outcome: Outcome,
        existing: Row | None = None,
    ) -> Receipt:
        run_id = await self._queue.ingest(
            transaction, actor, document_id, number, upload.space_id, from_stage=_first_stage(upload)
        )
        data: dict[str, Any] = {
            "version": number,
            "newest_version": number,
            "state": "received",
            "stage": "received",
            "run_id": run_id,
            "sha256": upload.sha256,
            "bytes": upload.bytes,
            "blob_key": upload.blob_key,
            "media_type": upload.media_type,
            "url": upload.url,
        }
        if existing is None:
            data |= {
                "space_id": upload.space_id,
                "source": upload.source,
                "external_id": upload.external_id,
                "title": upload.title,
                "owner": actor.user,
                "readers": upload.readers if upload.readers is not None else [SPACE_READERS],
                "tags": upload.tags or [],
                "parent_id": upload.parent_id,
            }
        elif upload.title is not None:
            data["title"] = upload.title
        trace = self._trace()
        await documents_store.append(
            transaction, document_id, "document.received", data, actor=actor.user, run_id=run_id, traceparent=trace
        )
        duplicate = await documents_store.readable_twin(transaction, actor, upload.sha256, document_id)
        shown: Outcome = "accepted" if upload.url is not None else outcome
        return Receipt(
            document_id=document_id,
            external_id=upload.external_id,
            run_id=run_id,
            state="received",
            version=number,
            outcome=shown,
            duplicate_of=duplicate,
        )

    async def _apply_metadata(self, transaction: Transaction, actor: Actor, existing: Row, upload: Upload) -> None:
        """Readers, tags and title that came along with bytes we have already."""
        readers_changed = upload.readers is not None and sorted(upload.readers) != sorted(existing["readers"] or [])
        if upload.readers is not None and readers_changed:
            await self._change_readers(transaction, actor, existing, upload.readers)
        asked = {"tags": upload.tags, "title": upload.title}
        labels = {name: value for name, value in asked.items() if value is not None and value != existing[name]}
        if labels:
            await self._relabel(transaction, actor, existing, labels, refreshed=readers_changed)

    async def _change(
        self, transaction: Transaction, actor: Actor, document_id: str, type: str, data: dict[str, Any]
    ) -> None:
        await documents_store.append(transaction, document_id, type, data, actor=actor.user)

    async def retry(self, actor: Actor, document_id: str) -> str:
        """A new run of the newest version from the stage that failed. 409 when that version is not failed or cancelled."""
        async with self._database.begin(actor.tenant) as transaction:
            document = await self._writable(transaction, actor, document_id)
            version = await documents_store.version(transaction, document_id, document["newest_version"])
            if version is None or version["state"] not in ("failed", "cancelled"):
                raise Conflict("Only a failed or cancelled document can be tried again.", state=document["state"])
            number, stage = int(version["number"]), (version["error"] or {}).get("stage")
            run_id = await self._queue.ingest(
                transaction, actor, document_id, number, document["space_id"], from_stage=stage
            )
            again = {"version": number, "state": "received", "stage": "received", "error": None, "run_id": run_id}
            await documents_store.append(
                transaction, document_id, "document.retried", again, actor=actor.user, run_id=run_id
            )
            await idempotency_store.complete(transaction, RunAccepted(run_id=run_id))
        await self._start(run_id)
        return run_id

    async def cancel(self, actor: Actor, document_id: str) -> str:
        """Asks every open ingest of the document to stop; gives the newest one's run. 409 when none is open."""
        async with self._database.begin(actor.tenant) as transaction:
            await self._writable(transaction, actor, document_id)
            runs = await runs_store.open_runs_of(transaction, document_id, "ingest")
            if not runs:
                raise Conflict("No work is under way for this document.", type="nothing_to_cancel")
            for run_id in runs:
                await runs_store.request_cancel(transaction, run_id, actor.user)
            await idempotency_store.complete(transaction, RunAccepted(run_id=runs[-1]))
        await self.start_all(runs)
        return runs[-1]

    async def remove(self, actor: Actor, document_id: str) -> str:
        """Tombstones the document and its members, cancels their ingests and queues the removal: one transaction."""
        async with self._database.begin(actor.tenant) as transaction:
            document = await self._writable(transaction, actor, document_id)
            removals, cancelled = await self.bury(transaction, actor, document)
        if not removals:  # two deletes at once: the other one came first
            raise NotFound("There is no such document that this key can see.", document=document_id)
        await self.start_all([*removals, *cancelled])
        return removals[0]

    async def bury(self, transaction: Transaction, actor: Actor, document: Row) -> tuple[list[str], list[str]]:
        """Tombstone and RemoveDocument for a document and all below it, and a cancel for each of their ingests.

        Gives the removals' runs, the document's own first, and the cancelled runs: all have something to deliver.

        Runs are locked before documents, as everywhere. An ingest that slips in between finds the tombstone; a member
        that one brought until then is seen here, because it held the parent's row.
        """
        removals: list[str] = []
        cancelled: list[str] = []
        rows = [document]
        for row in rows:
            ingests = await runs_store.open_runs_of(transaction, row["id"], "ingest")
            for run_id in ingests:
                await runs_store.request_cancel(transaction, run_id, actor.user)
            cancelled += ingests
            current = await documents_store.get(transaction, row["id"], for_update=True)
            if current is None or current["tombstoned_at"] is not None:
                continue  # another removal came first and takes care of it
            removals.append(await self._tombstone(transaction, actor, row))
            rows += await documents_store.children(transaction, row["id"])
        await transaction.notify(documents_store.ACCESS_CHANNEL, actor.tenant)
        return removals, cancelled

    async def _tombstone(self, transaction: Transaction, actor: Actor, row: Row) -> str:
        run_id = await self._queue.removal(transaction, actor, row)
        data = {"state": "removing", "tombstoned_at": transaction.now.isoformat()}
        await documents_store.append(transaction, row["id"], "document.removing", data, actor=actor.user, run_id=run_id)
        return run_id

    async def remove_space(self, actor: Actor, space_id: str) -> str:
        async with self._database.begin(actor.tenant) as transaction:
            space = await spaces_store.resolve(transaction, actor, space_id, "manager")
            await spaces_store.tombstone(transaction, space["id"])
            run_id = await self._queue.space_removal(transaction, actor, space["id"])
            draft = EventDraft(stream=space_stream(space["id"]), type="space.removed", cause=run_id)
            await event_log.append(transaction, draft, actor=actor.user, correlation=run_id)
            await transaction.notify(documents_store.ACCESS_CHANNEL, actor.tenant)
        await self._start(run_id)
        return run_id

    async def set_readers(self, actor: Actor, document_id: str, readers: list[str]) -> None:
        """Holds at once by invariant 1; RefreshAccess then rewrites the indexes' payloads.

        What a container holds is read by who may read the container: its members change with it.
        """
        check_readers(readers)
        async with self._database.begin(actor.tenant) as transaction:
            rows = [await self._writable(transaction, actor, document_id, managing=True)]
            for row in rows:
                rows += await documents_store.children(transaction, row["id"])
            started = [await self._change_readers(transaction, actor, row, readers) for row in rows]
        await self.start_all(started)

    async def _change_readers(self, transaction: Transaction, actor: Actor, document: Row, readers: list[str]) -> str:
        run_id = await self._queue.refresh(transaction, actor, document)
        data = {"readers": readers, "access_version": document["access_version"] + 1}
        await self._change(transaction, actor, document["id"], "document.readers_changed", data)
        await transaction.notify(documents_store.ACCESS_CHANNEL, actor.tenant)
        return run_id

    async def set_tags(self, actor: Actor, document_id: str, tags: list[str]) -> None:
        """The read model has them at once; a search that filters by them follows when the indexes are rewritten."""
        if len(tags) > self._limits.tags:
            raise InvalidRequest(f"At most {self._limits.tags} tags (PERDURE_LIMITS__TAGS).")
        async with self._database.begin(actor.tenant) as transaction:
            document = await self._writable(transaction, actor, document_id)
            run_id = await self._relabel(transaction, actor, document, {"tags": tags})
        await self._start(run_id)

    async def _relabel(
        self, transaction: Transaction, actor: Actor, document: Row, changed: dict[str, Any], *, refreshed: bool = False
    ) -> str | None:
        """New tags or a new title, which the indexes hold too. `refreshed`: they are rewritten anyway."""
        run_id = None
        if not refreshed:
            run_id = await self._queue.refresh(transaction, actor, document)
        data = {**changed, "access_version": document["access_version"] + 1}
        await self._change(transaction, actor, document["id"], "document.tags_changed", data)
        return run_id

    async def _writable(
        self, transaction: Transaction, actor: Actor, document_id: str, *, managing: bool = False
    ) -> Row:
        """The document. 404 when it may not be read, 403 when it may be read but not changed."""
        row = await documents_store.get_readable(transaction, actor, document_id)
        if row is None:
            raise NotFound("There is no such document that this key can see.", document=document_id)
        least = "manager" if managing and row["owner"] != actor.user else "contributor"
        if not await spaces_store.has_role(transaction, actor, row["space_id"], least):
            raise Forbidden(f"This needs the role '{least}' on the document's space.", needs=least)
        return row

    async def start_all(self, run_ids: list[str]) -> None:
        for run_id in run_ids:
            await self._start(run_id)

    async def _start(self, run_id: str | None) -> None:
        if run_id is not None:
            await self._deliver_head(runs_store.TEMPORAL, run_stream(run_id))


def _first_stage(upload: Upload) -> str | None:
    """Bytes that are here need no fetching."""
    return "parsing" if upload.blob_key is not None else None


def check_readers(readers: list[str] | None) -> None:
    for reader in readers or []:
        kind, _, key = reader.partition(":")
        if reader != SPACE_READERS and not (kind in ("user", "group") and key):
            raise InvalidRequest(f"'{reader}' is no reader: use 'space', 'user:<id>' or 'group:<id>'.", reader=reader)


def _same_bytes(newest: Row, upload: Upload) -> bool:
    if newest["state"] in ("failed", "cancelled") or upload.sha256 is None:
        return False
    return bool(newest["sha256"] == upload.sha256)


def _receipt(existing: Row, upload: Upload, run_id: str | None, outcome: Outcome) -> Receipt:
    return Receipt(
        document_id=existing["id"],
        external_id=upload.external_id,
        run_id=run_id,
        state=existing["state"],
        version=existing["newest_version"],
        outcome=outcome,
    )
