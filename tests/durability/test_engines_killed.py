"""Every process that `up` starts is killed while a document is under way: the work goes on by itself."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.durability.children import CUTTER, EMBEDDER, PARSER, children, send
from tests.durability.conversation import facts_of, make_space, upload, wait_for_all_runs, wait_for_state
from tests.durability.index_contents import read_indexes
from tests.durability.material import long_text
from tests.durability.proofs import prove_audited, prove_one_end, prove_ready
from tests.running.processes import PerdureProcess, wait_until

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def serving(perdure: PerdureProcess) -> PerdureProcess:
    perdure.start()
    make_space(perdure)
    return perdure


def killed_while_held(serving: PerdureProcess, name: str, module: str, state: str, kill: Callable[[], None]) -> str:
    """Uploads while the children of `module` stand still, kills when the document has come to them; gives its id."""
    held = children(serving, module)
    send(held, signal.SIGSTOP)
    try:
        document_id = str(upload(serving, f"{name}.md", long_text(name, 20))["document_id"])
        wait_for_state(serving, document_id, state)
        kill()
    finally:
        for pid in held:
            if Path(f"/proc/{pid}").exists():
                os.kill(pid, signal.SIGCONT)
    return document_id


def prove_it_went_on(serving: PerdureProcess, document_id: str) -> None:
    wait_for_state(serving, document_id, "ready")
    wait_for_all_runs(serving)
    prove_ready(serving, document_id)
    (run_id,) = facts_of(serving).runs_of(document_id)
    prove_one_end(serving, run_id)
    prove_audited(serving)


@pytest.mark.parametrize("engine", ["temporal", "kafka", "consumers", "postgres"])
def test_an_ingest_goes_on_when_an_engine_is_killed(serving: PerdureProcess, engine: str) -> None:
    before = serving.engine_pid(engine)

    def kill() -> None:
        os.kill(before, signal.SIGKILL)
        wait_until(lambda: _other_pid(serving, engine, before))

    document_id = killed_while_held(serving, f"without-{engine}", EMBEDDER, "embedding", kill)
    prove_it_went_on(serving, document_id)


def _other_pid(serving: PerdureProcess, engine: str, before: int) -> bool:
    try:
        return serving.engine_pid(engine) != before
    except (OSError, ValueError):
        return False


@pytest.mark.parametrize(("module", "state"), [(PARSER, "parsing"), (CUTTER, "chunking"), (EMBEDDER, "embedding")])
def test_an_ingest_goes_on_when_a_child_at_work_is_killed(serving: PerdureProcess, module: str, state: str) -> None:
    pids = children(serving, module)
    document_id = killed_while_held(serving, f"without-{module}", module, state, lambda: send(pids, signal.SIGKILL))
    prove_it_went_on(serving, document_id)


def test_after_all_this_every_chunk_stands_once_in_both_indexes(serving: PerdureProcess) -> None:
    documents = [row["id"] for row in facts_of(serving).rows("SELECT id FROM documents")]
    wanted = {document_id: facts_of(serving).chunks(document_id) for document_id in documents}
    assert wanted
    serving.kill()
    contents = read_indexes(serving.data_dir)
    for document_id, chunks in wanted.items():
        contents.assert_holds_once(document_id, chunks)
