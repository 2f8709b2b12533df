"""IngestDocument, killed at every stage boundary and again on its way back."""

from __future__ import annotations

import pytest

from tests.durability.conversation import facts_of, make_space, perhaps, upload, wait_for_all_runs, wait_for_state
from tests.durability.index_contents import IndexContents, read_indexes
from tests.durability.kill_chain import both_sides, die_at, kill_along
from tests.durability.material import MANY_SECTIONS, long_text
from tests.durability.proofs import prove_audited, prove_one_end, prove_ready
from tests.running.processes import PerdureProcess

BETWEEN_STAGES = [
    "start.before_outbox_mark",
    "ingest.claimed",
    "parse.after",
    "chunk.after",
    "embed.between_batches",
    "embed.between_batches",
    "embed.after",
    "index.after",
    "publish.after",
    "sweep.after",
    "finish_ingest.after",
]
"""Killed after its commit, a stage is run again from its beginning by the next start."""
EVERYWHERE = [
    *BETWEEN_STAGES[:2],
    *both_sides("parse", "chunk", "embed", "index", "publish", "sweep", "finish_ingest"),
    "embed.between_batches",
]


@pytest.mark.timeout(1800)
def test_a_document_killed_between_all_stages_is_ready_with_every_chunk_once(perdure: PerdureProcess) -> None:
    perdure.start()
    make_space(perdure)
    perdure.stop()
    perdure.start(PERDURE_FAILPOINTS=BETWEEN_STAGES[0])
    perhaps(upload, perdure, "chain.md", long_text("chain"))
    seen: dict[str, IndexContents] = {}

    def look(failpoint: str) -> None:
        if failpoint in ("index.after", "finish_ingest.after"):
            seen[failpoint] = read_indexes(perdure.data_dir)

    kill_along(perdure, BETWEEN_STAGES, look)
    run_id = facts_of(perdure).newest_run("ingest")
    document_id = str(facts_of(perdure).run(run_id)["subject"])
    wait_for_state(perdure, document_id, "ready")
    wait_for_all_runs(perdure)
    prove_ready(perdure, document_id)
    prove_one_end(perdure, run_id)
    prove_audited(perdure)
    chunks = facts_of(perdure).chunks(document_id)
    assert len(chunks) >= MANY_SECTIONS
    made = [e for e in facts_of(perdure).stream(f"document:{document_id}") if e["type"] == "document.published"]
    assert made[0]["data"]["embeddings_made"] == len(set(chunks)), "what was embedded before a kill is not done again"
    for failpoint, contents in seen.items():
        contents.assert_holds_once(document_id, chunks, failpoint)
    perdure.kill()
    read_indexes(perdure.data_dir).assert_holds_once(document_id, chunks)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("failpoint", EVERYWHERE)
def test_a_document_killed_twice_at_one_boundary_is_ready(perdure: PerdureProcess, failpoint: str) -> None:
    if perdure.running:
        perdure.kill()
    perdure.start()
    make_space(perdure)
    perdure.stop()
    perdure.start(PERDURE_FAILPOINTS=failpoint)
    perhaps(upload, perdure, f"{failpoint}.md", long_text(failpoint, 20))
    die_at(perdure, failpoint)
    perdure.launch(PERDURE_FAILPOINTS=failpoint)
    die_at(perdure, failpoint)
    perdure.start()
    run_id = facts_of(perdure).newest_run("ingest")
    document_id = str(facts_of(perdure).run(run_id)["subject"])
    wait_for_state(perdure, document_id, "ready")
    wait_for_all_runs(perdure)
    prove_ready(perdure, document_id)
    prove_one_end(perdure, run_id)
    chunks = facts_of(perdure).chunks(document_id)
    perdure.kill()
    read_indexes(perdure.data_dir).assert_holds_once(document_id, chunks)
