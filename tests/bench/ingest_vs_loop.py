"""Documents through workflows, against a plain loop over the same parse, chunk, embed and index functions."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from schemas.index_records import IndexedChunk
from services.ingestion.text_pool import ChunkWords
from services.retrieval.index_tokens import ChunkTokens
from tests.bench import material
from tests.bench.in_process import InProcess, services_at
from tests.bench.measuring import Bench, Measured, say
from tests.bench.served import Served, serving

SECTIONS = 20
FILES_PER_REQUEST = 10


async def measure(bench: Bench) -> Measured:
    """Rounds alternate, and both sides of a round have the same texts. The ratio is of the sums over all rounds."""
    documents, rounds = bench.times(60, 12), bench.times(3, 1)
    workflow_s, loop_s, workflow_chunks, loop_chunks = [], [], [], []
    async with serving(bench, "ingest") as served, services_at(bench.folder / "loop") as plain:
        for number in range(rounds):
            texts = {f"{number}-{n}.md": material.document(f"ingest {number} {n}", SECTIONS) for n in range(documents)}
            took_s, chunks = await _through_workflows(served, texts)
            workflow_s.append(took_s)
            workflow_chunks.append(chunks)
            took_s, chunks = await _in_a_loop(plain, texts)
            loop_s.append(took_s)
            loop_chunks.append(chunks)
            say(f"round {number}: {workflow_s[-1]:.1f} s through workflows, {took_s:.1f} s in a loop")
    assert workflow_chunks == loop_chunks, "both sides must do the same work"
    rate, loop_rate = sum(workflow_chunks) / sum(workflow_s), sum(loop_chunks) / sum(loop_s)
    raw = {
        "documents_per_round": documents,
        "chunks_per_round": workflow_chunks,
        "workflow_s": [round(value, 2) for value in workflow_s],
        "loop_s": [round(value, 2) for value in loop_s],
        "loop_chunks_per_s": round(loop_rate, 2),
    }
    return {"ingest_vs_loop": round(rate / loop_rate, 3), "chunks_per_s": round(rate, 2), "raw": raw}


async def _through_workflows(served: Served, texts: dict[str, str]) -> tuple[float, int]:
    """From the first request to the last run's end by the product's own record; and the chunks that are live."""
    started = time.time()
    receipts = []
    named = list(texts.items())
    for first in range(0, len(named), FILES_PER_REQUEST):
        receipts += await served.upload(dict(named[first : first + FILES_PER_REQUEST]))
    runs = await served.until_ended([receipt["run_id"] for receipt in receipts])
    took_s = max(run["ended_at"].timestamp() for run in runs) - started
    documents = [receipt["document_id"] for receipt in receipts]
    count = "SELECT count(*) AS chunks FROM version_chunks WHERE document_id = ANY(%s)"
    return took_s, (await served.rows(count, documents))[0]["chunks"]


async def _in_a_loop(plain: InProcess, texts: dict[str, str]) -> tuple[float, int]:
    started, chunks = time.time(), 0
    for name, text in texts.items():
        chunks += await _load(plain, name, text)
    return time.time() - started, chunks


async def _load(plain: InProcess, name: str, text: str) -> int:
    engines = plain.services.engines
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
        source, scratch = Path(folder) / "source", Path(folder) / "members"
        source.write_text(text, encoding="utf-8")
        scratch.mkdir()
        parsed = await engines.parsers.parse(source, name, "text/markdown", scratch, 0)
        title = parsed.title or name
        identified = await engines.texts.cut(Path(parsed.canonical_file), name, title)
    drafts = [draft for _, draft in identified]
    words = await engines.texts.words(
        title, [ChunkWords(title, draft.heading_path, draft.context or "", draft.text) for draft in drafts]
    )
    points = []
    batch = engines.settings.embedding.batch
    for first in range(0, len(identified), batch):
        part = identified[first : first + batch]
        vectors = await engines.model.embed_passages([draft.embedding_input for _, draft in part])
        points += [
            _point(plain, name, chunk, tokens, vector.astype("<f4").tobytes())
            for (chunk, _), tokens, vector in zip(part, words[first : first + batch], vectors, strict=True)
        ]
    await engines.vectors.upsert(points)
    await engines.keywords.upsert(points)
    return len(points)


def _point(plain: InProcess, name: str, chunk: str, tokens: ChunkTokens, vector: bytes) -> IndexedChunk:
    return IndexedChunk(
        id=chunk,
        tenant=plain.admin.actor.tenant,
        space="bench",
        document=name,
        access_version=1,
        readers=["space:bench"],
        media_type="text/markdown",
        source="upload",
        model=plain.services.engines.model.name,
        vector=vector,
        title_tokens=tokens.title,
        body_tokens=tokens.body,
        exact_tokens=tokens.exact,
    )
