"""The door to artifacts: seen with their run, and read only by who may read what its turn read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from schemas.access import Actor
from schemas.conversations import ArtifactView
from schemas.errors import NotFound
from schemas.identifiers import run_stream
from services.access import withholding
from services.stores import artifacts_store, run_views
from services.stores.blob_store import BlobStore
from services.stores.database import Database, Row, Transaction

_UNKNOWN = "There is no artifact with this id that this key can see."


@dataclass(frozen=True)
class ArtifactContent:
    """The bytes as they are sent."""

    name: str
    media_type: str
    pieces: AsyncIterator[bytes]


class Artifacts:
    """Needs Postgres and the blobs."""

    def __init__(self, database: Database, blobs: BlobStore) -> None:
        self._database = database
        self._blobs = blobs

    async def of_run(self, actor: Actor, run_id: str, after: str, limit: int) -> list[ArtifactView]:
        async with self._database.begin(actor.tenant) as transaction:
            if await run_views.get(transaction, actor, run_id) is None:
                raise NotFound("There is no run with this id that this key can see.")
            withheld = (await withholding.of_record(transaction, actor, run_stream(run_id))).withheld
            rows = await artifacts_store.of_run(transaction, run_id, after, limit)
        return [_view(row, withheld=withheld) for row in rows]

    async def content(self, actor: Actor, artifact_id: str) -> ArtifactContent:
        async with self._database.begin(actor.tenant) as transaction:
            row = await self._readable(transaction, actor, artifact_id)
        return ArtifactContent(row["name"], row["media_type"], self._blobs.stream(row["blob_key"]))

    @staticmethod
    async def _readable(transaction: Transaction, actor: Actor, artifact_id: str) -> Row:
        row = await artifacts_store.get(transaction, artifact_id)
        if row is None or await run_views.get(transaction, actor, row["run_id"]) is None:
            raise NotFound(_UNKNOWN)
        verdict = await withholding.of_record(transaction, actor, run_stream(row["run_id"]))
        if verdict.withheld or row["blob_key"] is None:
            raise NotFound("This artifact is withheld: it came from a document that this key may not read now.")
        return row


def _view(row: Row, *, withheld: bool) -> ArtifactView:
    hidden = withheld or row["blob_key"] is None
    shown = {name: row[name] for name in ("id", "run_id", "session_id", "media_type", "bytes", "created_at")}
    return ArtifactView(**shown, name=None if hidden else row["name"], withheld=hidden)
