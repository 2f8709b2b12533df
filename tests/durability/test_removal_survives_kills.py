"""RemoveDocument, killed at every stage boundary: what people deleted goes, whatever happens meanwhile."""

from __future__ import annotations

import pytest

from tests.durability.conversation import (
    document,
    facts_of,
    make_space,
    perhaps,
    remove,
    search,
    upload,
    wait_for_all_runs,
    wait_for_state,
)
from tests.durability.index_contents import read_indexes
from tests.durability.kill_chain import both_sides, die_at, kill_along
from tests.durability.material import short_text
from tests.durability.proofs import prove_audited, prove_one_end, prove_removed
from tests.running.processes import PerdureProcess

STEPS = ("close_ingests", "empty_indexes", "empty_blobs", "empty_rows", "finish_removal")
AFTER_EACH_STEP = ["start.before_outbox_mark", *(f"{step}.after" for step in STEPS)]
EVERYWHERE = [AFTER_EACH_STEP[0], *both_sides(*STEPS)]


def ready_document(perdure: PerdureProcess, name: str) -> str:
    """In a Perdure that runs unarmed, which is stopped afterwards."""
    if perdure.running:
        perdure.kill()
    perdure.start()
    make_space(perdure)
    document_id = str(upload(perdure, f"{name}.md", short_text(name))["document_id"])
    wait_for_state(perdure, document_id, "ready")
    perdure.stop()
    return document_id


def prove_gone(perdure: PerdureProcess, document_id: str, name: str) -> None:
    wait_for_all_runs(perdure)
    prove_removed(perdure, document_id)
    prove_one_end(perdure, facts_of(perdure).newest_run("remove"))
    assert document_id not in [hit["document_id"] for hit in search(perdure, f"limits of {name}")]


@pytest.mark.timeout(1800)
def test_a_removal_killed_after_every_step_leaves_nothing(perdure: PerdureProcess) -> None:
    document_id = ready_document(perdure, "doomed")
    perdure.start(PERDURE_FAILPOINTS=AFTER_EACH_STEP[0])
    perhaps(remove, perdure, document_id)
    kill_along(perdure, AFTER_EACH_STEP)
    assert document(perdure, document_id) is None
    prove_gone(perdure, document_id, "doomed")
    prove_audited(perdure)
    perdure.kill()
    read_indexes(perdure.data_dir).assert_holds_once(document_id, [])


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("failpoint", EVERYWHERE)
def test_a_removal_killed_twice_at_one_boundary_leaves_nothing(perdure: PerdureProcess, failpoint: str) -> None:
    document_id = ready_document(perdure, failpoint)
    perdure.start(PERDURE_FAILPOINTS=failpoint)
    perhaps(remove, perdure, document_id)
    die_at(perdure, failpoint)
    perdure.launch(PERDURE_FAILPOINTS=failpoint)
    die_at(perdure, failpoint)
    perdure.start()
    prove_gone(perdure, document_id, failpoint)
    perdure.kill()
    read_indexes(perdure.data_dir).assert_holds_once(document_id, [])
