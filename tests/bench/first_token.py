"""What an answer's first token waits for beyond the services themselves: API, workflow, activities, stream."""

from __future__ import annotations

import asyncio
import random
import shutil
import statistics
import time

from infra.wiring import Services
from schemas.access import Actor
from services.answers.extractive import compose, render
from services.answers.retrieving import SIBLING_REACH
from services.retrieval.assemble import assemble
from services.retrieval.evidence import EvidenceCandidate, judge_evidence
from services.stores import live_chunks
from tests.bench import material
from tests.bench.in_process import services_at
from tests.bench.measuring import Bench, Measured, percentile, say, spread
from tests.bench.served import SETTLE_S, SPACE, Served, connected, read_events
from tests.running.processes import PerdureProcess

SECTIONS = 20
PAUSE_S = 0.1


async def measure(bench: Bench) -> Measured:
    """Each question is put to both sides in turn; the figure is the median of the differences."""
    perdure = PerdureProcess(bench.folder / "answers")
    copy = bench.folder / "answers-copy"
    texts = {f"{n}.md": material.document(f"answers {n}", SECTIONS) for n in range(bench.times(20, 5))}
    try:
        await asyncio.to_thread(perdure.start)
        async with connected(perdure) as served:
            (await served.http.post("/spaces", json={"name": SPACE})).raise_for_status()
            await served.ingest(texts)
        await asyncio.to_thread(perdure.stop)
        await asyncio.to_thread(shutil.copytree, perdure.data_dir, copy, symlinks=True)
        await asyncio.to_thread(perdure.start)
        async with connected(perdure) as served, services_at(copy) as plain:
            await plain.services.statistics.prepare()
            await asyncio.sleep(SETTLE_S)
            return await _compare(served, plain.services, plain.admin.actor, list(texts.values()), bench.times(60, 10))
    finally:
        await asyncio.to_thread(perdure.stop)
        shutil.rmtree(perdure.data_dir, ignore_errors=True)
        shutil.rmtree(copy, ignore_errors=True)


async def _compare(served: Served, services: Services, actor: Actor, texts: list[str], questions: int) -> Measured:
    rng = random.Random(6)
    streamed_ms, direct_ms, answered = [], [], 0
    for number in range(-5, questions):
        question = f"What is said of {material.question(rng, rng.choice(texts))}?"
        await asyncio.sleep(PAUSE_S)
        streamed_s = await _streamed(served, question)
        direct_s, enough = await _direct(services, actor, question)
        if number >= 0:
            streamed_ms.append(streamed_s * 1_000)
            direct_ms.append(direct_s * 1_000)
            answered += enough
    added_ms = [streamed - direct for streamed, direct in zip(streamed_ms, direct_ms, strict=True)]
    say(f"first token after {statistics.median(streamed_ms):.1f} ms, {statistics.median(direct_ms):.1f} ms directly")
    raw = {
        "streamed_ms": spread(streamed_ms),
        "direct_ms": spread(direct_ms),
        "added_ms_p95": round(percentile(added_ms, 0.95), 1),
        "answered": answered,
    }
    return {"added_first_token_ms_p50": round(statistics.median(added_ms), 1), "raw": raw}


async def _streamed(served: Served, question: str) -> float:
    """Seconds from the request to the first token, seen by the caller. The answer is read to its end all the same."""
    started = time.perf_counter()
    first_s: float | None = None
    body = {"question": question, "space": SPACE}
    async with served.http.stream("POST", "/answers", json=body, headers={"Accept": "text/event-stream"}) as response:
        assert response.status_code < 300, response.status_code
        async for event in read_events(response):
            if event.type == "token" and first_s is None:
                first_s = time.perf_counter() - started
    assert first_s is not None
    return first_s


async def _direct(services: Services, actor: Actor, question: str) -> tuple[float, bool]:
    """The same services without a run: seconds until the first sentence stands, and whether there was evidence."""
    engines = services.engines
    retrieval, answers = engines.settings.retrieval, engines.settings.answers
    started = time.perf_counter()
    found = await services.finding.find(actor, question, [SPACE], None, retrieval.passages * 2)
    async with engines.database.begin(actor.tenant) as transaction:
        siblings = await live_chunks.around(transaction, actor, [hit.chunk for hit in found.hits], SIBLING_REACH)
    passages = assemble(found.hits, siblings, retrieval)
    known = await services.statistics.of_spaces(actor.tenant, question, found.spaces)
    candidates = found.hits[: retrieval.passages]
    vectors = await engines.vectors.vectors([hit.chunk.chunk_id for hit in candidates])
    evidence = judge_evidence(
        question,
        found.query.vector,
        [EvidenceCandidate(hit.chunk.text, vectors.get(hit.chunk.chunk_id)) for hit in candidates],
        known.space,
        threshold=answers.evidence_threshold,
        background_mean=known.background_mean,
    )
    text = render(question, compose(question, passages, statistics=known.space)) if evidence.enough else "nothing"
    assert text
    return time.perf_counter() - started, evidence.enough
