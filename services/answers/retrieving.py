"""Step retrieve of AnswerQuestion: passages, their sources on record, and whether they are evidence."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.access import Actor
from schemas.answers import AnswerRequest
from schemas.errors import EngineDown, NotFound, PermanentFailure
from schemas.passages import Passage
from schemas.runs import RunEventDraft
from schemas.settings import AnswerSettings, RetrievalSettings
from services.retrieval.assemble import assemble
from services.retrieval.evidence import EvidenceCandidate, judge_evidence
from services.retrieval.finding import Finding, Found
from services.retrieval.statistics import Known, Statistics
from services.stores import answers_store, documents_store, live_chunks, run_event_log, runs_store, scrub_store
from services.stores.database import Database, Row
from services.stores.vector_index import VectorIndex

STEP = "retrieve"
SIBLING_REACH = 3


@dataclass(frozen=True)
class AnswerWork:
    """Which answer a step is about, and the run that makes it."""

    tenant: str
    run_id: str
    answer_id: str

    @property
    def record(self) -> str:
        return f"run:{self.run_id}"


class Retrieving:
    """Finds passages for the asker as they may read now, and puts their sources on record before anything is said."""

    def __init__(
        self,
        database: Database,
        finding: Finding,
        statistics: Statistics,
        vectors: VectorIndex,
        retrieval: RetrievalSettings,
        answers: AnswerSettings,
    ) -> None:
        self._database = database
        self._finding = finding
        self._statistics = statistics
        self._vectors = vectors
        self._retrieval = retrieval
        self._answers = answers

    async def run(self, work: AnswerWork) -> dict[str, int]:
        """Counts: passages, enough (1 when there is evidence). A second run of the step finds the first one's result."""
        with self._database.precedence.ahead():
            async with self._database.begin(work.tenant) as transaction:
                stored = await runs_store.step_result(transaction, work.run_id, STEP)
                row = await answers_store.get(transaction, work.answer_id)
            if stored is not None:
                return dict(stored["counts"])
            return await self._retrieve(work, row)

    async def again(self, work: AnswerWork) -> None:
        """For passages whose versions were replaced meanwhile: what is found now takes their place."""
        async with self._database.begin(work.tenant) as transaction:
            row = await answers_store.get(transaction, work.answer_id)
        await self._retrieve(work, row)

    async def _retrieve(self, work: AnswerWork, row: Row | None) -> dict[str, int]:
        if row is None:
            raise PermanentFailure("corrupt", "The question's row is not there any more")
        request = AnswerRequest.model_validate(row["request"])
        actor = Actor(tenant=work.tenant, user=row["actor_user"], key=row["actor_key"])
        try:
            found = await self._finding.find(
                actor, request.question, request.spaces, request.filters, self._retrieval.passages * 2
            )
        except NotFound as gone:
            raise PermanentFailure("not_found", gone.detail) from gone
        passages = await self._passages(actor, found)
        known = await self._statistics.of_spaces(work.tenant, request.question, found.spaces)
        enough = await self._enough(request.question, found, passages, known)
        return await self._store(work, found, passages, enough, known)

    async def _passages(self, actor: Actor, found: Found) -> list[Passage]:
        hits = found.hits
        async with self._database.begin(actor.tenant) as transaction:
            siblings = await live_chunks.around(transaction, actor, [hit.chunk for hit in hits], SIBLING_REACH)
        return assemble(hits, siblings, self._retrieval)

    async def _enough(self, question: str, found: Found, passages: list[Passage], known: Known) -> bool:
        candidates = found.hits[: self._retrieval.passages]
        try:
            vectors = await self._vectors.vectors([hit.chunk.chunk_id for hit in candidates])
        except EngineDown:
            vectors = {}  # the share of the question's words decides alone
        evidence = judge_evidence(
            question,
            found.query.vector,
            [
                EvidenceCandidate(_words(found, position), vectors.get(hit.chunk.chunk_id))
                for position, hit in enumerate(candidates)
            ],
            known.space,
            threshold=self._answers.evidence_threshold,
            background_mean=known.background_mean,
        )
        return evidence.enough and any(passage.n for passage in passages)

    async def _store(
        self, work: AnswerWork, found: Found, passages: list[Passage], enough: bool, known: Known
    ) -> dict[str, int]:
        """Sources are on record before anything of them can be streamed."""
        counts = {"passages": len(passages), "enough": int(enough)}
        used = sorted({(passage.document_id, passage.document_version) for passage in passages}) if enough else []
        shown = [
            {
                "n": passage.n,
                "document_id": passage.document_id,
                "title": passage.title,
                "page_start": passage.page_start,
            }
            for passage in passages
            if passage.n and enough
        ]
        done = {
            "legs": [leg.model_dump() for leg in found.legs],
            "degraded": found.degraded,
            "passages": len(shown),
        }
        async with self._database.begin(work.tenant) as transaction:
            await documents_store.hold_sources(transaction, [document_id for document_id, _ in used])
            await answers_store.record_sources(transaction, [work.record], used)
            await answers_store.store_passages(transaction, work.answer_id, passages if enough else [])
            rarity = {"chunks": known.space.chunks, "term_counts": dict(known.space.term_counts)}
            await runs_store.store_step(transaction, work.run_id, STEP, {"counts": counts, "rarity": rarity})
            events = [
                RunEventDraft(type="retrieval.done", data=done),
                RunEventDraft(type="sources", data=shown),
            ]
            await run_event_log.append(transaction, work.run_id, events)
            await scrub_store.withhold_if_removed(transaction, work.record)
        return counts


def _words(found: Found, position: int) -> str:
    chunk = found.hits[position].chunk
    return "\n".join(filter(None, [chunk.title, *chunk.heading_path, chunk.context, chunk.text]))
