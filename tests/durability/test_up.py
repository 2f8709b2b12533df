"""`perdure up` as a process: how it starts, refuses, stops, and what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.durability.children import EMBEDDER, children, send
from tests.durability.conversation import (
    ask,
    facts_of,
    make_space,
    upload,
    wait_for_all_runs,
    wait_for_state,
)
from tests.durability.index_contents import read_indexes
from tests.durability.material import long_text
from tests.durability.proofs import prove_audited, prove_one_end, prove_ready
from tests.running.processes import PerdureProcess, wait_until

pytestmark = pytest.mark.timeout(400)
HELD = 75
STOP_LIMIT_S = 20.0


@pytest.fixture(scope="module")
def awkward(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PerdureProcess]:
    """A data directory with spaces, quotes and more characters than a Unix socket's path may have."""
    parent = Path(tmp_path_factory.mktemp("up"))
    perdure = PerdureProcess(parent / 'our team\'s "shared" data (copy) – 资料' / ("long " * 30).strip() / "data dir")
    perdure.data_dir.parent.mkdir(parents=True)
    assert len(str(perdure.data_dir)) > 150
    yield perdure
    if perdure.running:
        perdure.kill()


def processes_of(perdure: PerdureProcess) -> dict[int, str]:
    """Every process below the serving one, and itself, by pid; the value names that process for ever (start time)."""
    found: dict[int, str] = {}
    waiting = [perdure.pid]
    while waiting:
        pid = waiting.pop()
        stat = _stat(pid)
        if stat is None:
            continue
        found[pid] = stat
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            waiting += [int(child) for child in task.read_text(encoding="ascii").split()]
    return found


def _stat(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return None
    state, *rest = stat.rpartition(")")[2].split()
    return None if state in "ZX" else rest[18]


def prove_all_gone(processes: dict[int, str]) -> None:
    assert len(processes) > 5, "engines and children were running"

    def left() -> list[int]:
        return [pid for pid, began in processes.items() if _stat(pid) == began]

    try:
        wait_until(lambda: not left(), within_s=30)
    except TimeoutError:
        names = {pid: Path(f"/proc/{pid}/cmdline").read_bytes()[:200] for pid in left()}
        raise AssertionError(f"still running: {names}") from None


def test_up_works_in_an_awkward_directory(awkward: PerdureProcess) -> None:
    awkward.start()
    make_space(awkward)
    document_id = upload(awkward, "first.md", long_text("first", 3))["document_id"]
    wait_for_state(awkward, document_id, "ready")
    prove_audited(awkward)


def test_a_second_up_says_who_holds_the_directory(awkward: PerdureProcess) -> None:
    argv = [sys.executable, "-m", "infra.main", "up", "--data-dir", str(awkward.data_dir), "--port", "0"]
    second = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert second.returncode == HELD, second.stderr
    assert str(awkward.pid) in second.stderr
    assert awkward.url in second.stderr
    assert "Traceback" not in second.stderr
    with awkward.client() as client:
        assert client.get("/me").status_code == 200, "the first one does not notice"


def held_at_embedding(awkward: PerdureProcess, name: str) -> str:
    """A document whose embedding stands still: the process that does it is stopped. Gives its id."""
    send(children(awkward, EMBEDDER), signal.SIGSTOP)
    document_id = str(upload(awkward, f"{name}.md", long_text(name, 20))["document_id"])
    wait_for_state(awkward, document_id, "embedding")
    return document_id


def test_sigterm_in_the_middle_of_work_leaves_no_process_and_loses_nothing(awkward: PerdureProcess) -> None:
    run_id = ask(awkward, "Where does counter 33 of first stand?")["run_id"]
    document_id = held_at_embedding(awkward, "cut")
    processes = processes_of(awkward)
    began = time.monotonic()
    assert awkward.stop() == 0
    assert time.monotonic() - began < STOP_LIMIT_S
    prove_all_gone(processes)
    awkward.start()
    wait_for_all_runs(awkward)
    prove_ready(awkward, document_id)
    prove_one_end(awkward, run_id)


def test_after_a_kill_of_everything_at_once_unfinished_work_goes_on(awkward: PerdureProcess) -> None:
    document_id = held_at_embedding(awkward, "all")
    processes = processes_of(awkward)
    for pid in processes:
        os.kill(pid, signal.SIGSTOP)  # so that none sees another die
    for pid in processes:
        os.kill(pid, signal.SIGKILL)
    awkward.wait_for_death()
    prove_all_gone(processes)
    awkward.start()
    wait_for_all_runs(awkward)
    prove_ready(awkward, document_id)
    prove_audited(awkward)
    chunks = facts_of(awkward).chunks(document_id)
    assert awkward.stop() == 0
    read_indexes(awkward.data_dir).assert_holds_once(document_id, chunks)


def test_leftovers_of_a_killed_up_are_ended_by_record_and_strangers_are_left_alone(awkward: PerdureProcess) -> None:
    """A record of another life, with the pid of a stranger that is running now, must not cost the stranger its life."""
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        awkward.start()
        awkward.kill()
        record = awkward.data_dir / "run" / "kafka.json"
        kept = json.loads(record.read_text(encoding="utf-8"))
        record.write_text(json.dumps({**kept, "pid": stranger.pid}), encoding="utf-8")
        awkward.start()
        assert stranger.poll() is None
        assert awkward.stop() == 0
    finally:
        stranger.kill()
        stranger.wait()
