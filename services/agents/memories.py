"""The door to memories, for their person and for agents that act for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from schemas.access import Actor
from schemas.errors import Conflict, InvalidRequest, NotFound
from schemas.identifiers import new_id
from schemas.memory import MemoryDraft, MemorySource, MemorySwitch, MemoryView
from schemas.settings import AgentSettings
from schemas.tools import Used
from services.access import withholding
from services.documents.clean_text import one_line
from services.gateways.embedding_model import EmbeddingModel
from services.retrieval.analyser import content_terms, terms
from services.stores import idempotency_store, memories_store, sources_store
from services.stores.database import Database, Row, Transaction

RECALLED, RECALLED_CHARS = 5, 600
MOST_READ = 10_000
SAME_COSINE = 0.97
"""From here on two memories of one person say the same: the newer takes the older's place."""
CONFIDENCE: dict[MemorySource, float] = {"explicit": 1.0, "proposed": 0.6}
_UNKNOWN = "There is no memory with this id that this key can see."


class Memories:
    """Recall compares all memories of a person: by vector, and by the words they share with the question."""

    def __init__(self, database: Database, model: EmbeddingModel, settings: AgentSettings) -> None:
        self._database = database
        self._model = model
        self._settings = settings

    async def add(
        self, actor: Actor, draft: MemoryDraft, source: MemorySource = "explicit", run_id: str | None = None
    ) -> MemoryView:
        """Conflict when memory is switched off, InvalidRequest when there is no room. One that says the same is replaced."""
        said = one_line(draft.text)
        if not said:
            raise InvalidRequest("There is nothing to remember in an empty text.")
        (vector,) = await self._model.embed_passages([said])
        async with self._database.begin(actor.tenant) as transaction:
            if not await memories_store.enabled(transaction, actor.user):
                raise Conflict("Memory is switched off for this user.", type="memory_off")
            count = await memories_store.count(transaction, actor.user)
            same = await self._same(transaction, actor.user, vector)
            values = {"kind": draft.kind, "source": source, "confidence": CONFIDENCE[source], "run_id": run_id}
            if same is None and count >= self._settings.memories:
                bound = f"PERDURE_AGENTS__MEMORIES={self._settings.memories}"
                raise InvalidRequest(f"There are {count} memories already; delete some first ({bound}).")
            if same is None:
                row = await memories_store.add(
                    transaction,
                    new_id(),
                    actor.user,
                    text_=said,
                    model=self._model.name,
                    vector=[float(each) for each in vector],
                    **values,  # type: ignore[arg-type]
                )
            else:
                changed = {**values, "text": said, "vector": [float(each) for each in vector]}
                await memories_store.change(transaction, same["id"], changed)
                row = {**same, **changed, "updated_at": transaction.now}
            if run_id is not None:
                await memories_store.copy_sources(transaction, row["id"], run_id)
            view = _view(row, withheld=False)
            await idempotency_store.complete(transaction, view)
        return view

    async def _same(self, transaction: Transaction, user: str, vector: np.ndarray) -> Row | None:
        rows = await memories_store.after(transaction, user, "", MOST_READ)
        scored = [(self._cosine(row, vector), row) for row in rows]
        best = max(scored, key=lambda each: each[0], default=(0.0, None))
        return best[1] if best[0] >= SAME_COSINE else None

    async def recall(self, actor: Actor, query: str) -> list[Row]:
        """At most 5, of 600 characters together, best first; none that its person may not read now."""
        async with self._database.begin(actor.tenant) as transaction:
            if not await memories_store.enabled(transaction, actor.user):
                return []
            rows = await memories_store.after(transaction, actor.user, "", MOST_READ)
            hidden = await withholding.withheld(transaction, actor, [_record(row) for row in rows])
        readable = [row for row in rows if _record(row) not in hidden]
        if not readable:
            return []
        vector = await self._model.embed_query(query)
        asked = set(content_terms(query))
        ranked = sorted(readable, key=lambda row: self._score(row, vector, asked), reverse=True)
        return _within(ranked[:RECALLED], RECALLED_CHARS)

    async def sources_of(self, actor: Actor, rows: Sequence[Row]) -> list[Used]:
        """The document versions that these memories came from."""
        async with self._database.begin(actor.tenant) as transaction:
            found = await sources_store.of_records(transaction, [_record(row) for row in rows])
        return [Used(document_id=document, version=version) for document, version in found]

    def _score(self, row: Row, vector: np.ndarray, asked: set[str]) -> float:
        share = len(asked & set(terms(row["text"]))) / len(asked) if asked else 0.0
        return self._cosine(row, vector) + share

    def _cosine(self, row: Row, vector: np.ndarray) -> float:
        """0 for a vector of another model: the two cannot be compared, the words still can."""
        if row["model"] != self._model.name:
            return 0.0
        return float(np.dot(np.asarray(row["vector"], dtype=np.float32), vector))

    async def of_person(self, actor: Actor, after: str, limit: int) -> list[MemoryView]:
        async with self._database.begin(actor.tenant) as transaction:
            rows = await memories_store.after(transaction, actor.user, after, limit)
            hidden = await withholding.withheld(transaction, actor, [_record(row) for row in rows])
        return [_view(row, withheld=_record(row) in hidden) for row in rows]

    async def change(self, actor: Actor, memory_id: str, draft: MemoryDraft) -> MemoryView:
        """What its person writes is explicit, and no longer an agent's."""
        said = one_line(draft.text)
        (vector,) = await self._model.embed_passages([said])
        async with self._database.begin(actor.tenant) as transaction:
            row = await memories_store.get(transaction, actor.user, memory_id)
            if row is None:
                raise NotFound(_UNKNOWN)
            changed = {
                "text": said,
                "kind": draft.kind,
                "source": "explicit",
                "confidence": CONFIDENCE["explicit"],
                "model": self._model.name,
                "vector": [float(each) for each in vector],
            }
            await memories_store.change(transaction, memory_id, changed)
            return await self._shown(transaction, actor, {**row, **changed, "updated_at": transaction.now})

    async def remove(self, actor: Actor, memory_id: str) -> None:
        async with self._database.begin(actor.tenant) as transaction:
            if not await memories_store.remove(transaction, actor.user, memory_id):
                raise NotFound(_UNKNOWN)

    async def remove_all(self, actor: Actor) -> None:
        async with self._database.begin(actor.tenant) as transaction:
            await memories_store.remove_all(transaction, actor.user)

    async def switch(self, actor: Actor) -> MemorySwitch:
        async with self._database.begin(actor.tenant) as transaction:
            return MemorySwitch(enabled=await memories_store.enabled(transaction, actor.user))

    async def set_switch(self, actor: Actor, wanted: MemorySwitch) -> MemorySwitch:
        async with self._database.begin(actor.tenant) as transaction:
            await memories_store.switch(transaction, actor.user, on=wanted.enabled)
        return wanted

    @staticmethod
    async def _shown(transaction: Transaction, actor: Actor, row: Row) -> MemoryView:
        verdict = await withholding.of_record(transaction, actor, _record(row))
        return _view(row, withheld=verdict.withheld)


def _record(row: Row) -> str:
    """Whose sources are the documents that a memory came from."""
    return f"memory:{row['id']}"


def _view(row: Row, *, withheld: bool) -> MemoryView:
    shown = {name: row[name] for name in MemoryView.model_fields if name in row}
    return MemoryView.model_validate({**shown, "text": None if withheld else row["text"], "withheld": withheld})


def _within(rows: list[Row], chars: int) -> list[Row]:
    kept: list[Row] = []
    for row in rows:
        chars -= len(row["text"])
        if chars < 0 and kept:
            break
        kept.append(row)
    return kept
