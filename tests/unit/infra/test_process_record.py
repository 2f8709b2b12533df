import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from infra.local_stack.process_record import ProcessRecord, end_leftovers, read_records, start_ticks


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def record_of(process: subprocess.Popen[bytes], end_signal: int = signal.SIGTERM) -> ProcessRecord:
    record = ProcessRecord.of("kafka", process.pid, end_signal, {"kafka": 9})
    assert record is not None
    return record


async def test_a_leftover_is_ended_and_its_record_dropped(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    record_of(sleeper).write(tmp_path)
    assert await end_leftovers(tmp_path) == ["kafka"]
    assert sleeper.wait(5) == -signal.SIGTERM
    assert read_records(tmp_path) == []


async def test_a_leftover_that_ignores_its_signal_is_killed(tmp_path: Path) -> None:
    deaf = subprocess.Popen(["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"], stdout=subprocess.PIPE)
    assert deaf.stdout is not None
    deaf.stdout.readline()
    record_of(deaf).write(tmp_path)
    await end_leftovers(tmp_path, patience_s=0.1)
    assert deaf.wait(5) == -signal.SIGKILL
    deaf.stdout.close()


@pytest.mark.parametrize("change", [{"start_ticks": 1}, {"boot_id": "another boot"}])
async def test_a_record_whose_pid_now_belongs_to_another_process_touches_nothing(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], change: dict[str, object]
) -> None:
    replace(record_of(sleeper), **change).write(tmp_path)  # type: ignore[arg-type]
    assert await end_leftovers(tmp_path) == []
    assert sleeper.poll() is None
    assert read_records(tmp_path) == []


async def test_a_record_of_a_process_that_is_gone_is_dropped(tmp_path: Path) -> None:
    process = subprocess.Popen(["true"])
    record = ProcessRecord("kafka", process.pid, 1, "boot", signal.SIGTERM, {})
    process.wait()
    record.write(tmp_path)
    assert await end_leftovers(tmp_path) == []
    assert read_records(tmp_path) == []


async def test_other_files_of_the_run_directory_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "ports.json").write_text('{"kafka": 23456}')
    (tmp_path / "broken.json").write_text("{")
    assert await end_leftovers(tmp_path) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.json", "ports.json"]


def test_a_process_that_only_waits_to_be_reaped_counts_as_gone() -> None:
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert start_ticks(process.pid) is None
    process.wait()
