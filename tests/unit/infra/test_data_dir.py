import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from infra.local_stack import DataDir, DataDirHeld, DataDirUnusable
from infra.local_stack.data_dir import LOG_KEPT_BYTES

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def test_a_second_holder_is_told_who_holds_it_where_and_since_when(tmp_path: Path) -> None:
    first = DataDir(tmp_path / "data")
    first.hold(NOW)
    first.announce("http://127.0.0.1:8700")
    with pytest.raises(DataDirHeld) as refused:
        DataDir(tmp_path / "data").hold(NOW)
    message = str(refused.value)
    assert str(os.getpid()) in message
    assert "http://127.0.0.1:8700" in message
    assert "2026-03-04T05:06:07+00:00" in message
    first.release()


def test_a_second_holder_is_told_so_before_the_first_one_listens(tmp_path: Path) -> None:
    first = DataDir(tmp_path)
    first.hold(NOW)
    with pytest.raises(DataDirHeld, match="still starting"):
        DataDir(tmp_path).hold(NOW)
    first.release()


def test_a_released_directory_can_be_held_again(tmp_path: Path) -> None:
    for _ in range(2):
        data_dir = DataDir(tmp_path)
        data_dir.hold(NOW)
        data_dir.release()


def test_the_lock_of_a_killed_holder_is_free_although_its_child_lives_on(tmp_path: Path) -> None:
    script = (
        "import sys, subprocess, os, signal, datetime, pathlib\n"
        "from infra.local_stack import DataDir\n"
        "DataDir(pathlib.Path(sys.argv[1])).hold(datetime.datetime.now(datetime.UTC))\n"
        "child = subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
        "print(child.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False)
    try:
        DataDir(tmp_path).hold(NOW)
    finally:
        os.kill(int(killed.stdout), 9)


def test_the_layout_is_private_to_its_owner(tmp_path: Path) -> None:
    data_dir = DataDir(tmp_path / "deep" / "data")
    data_dir.hold(NOW)
    for part in (data_dir.path, data_dir.postgres, data_dir.keys, data_dir.blobs, data_dir.run):
        assert part.stat().st_mode & 0o077 == 0
    data_dir.release()


def test_a_path_that_is_a_file_is_refused_with_advice(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataDirUnusable, match="choose a --data-dir"):
        DataDir(tmp_path / "file" / "data").hold(NOW)


def test_a_log_that_has_grown_is_put_aside_at_the_next_start(tmp_path: Path) -> None:
    data_dir = DataDir(tmp_path)
    data_dir.hold(NOW)
    with data_dir.open_log("kafka") as log:
        log.write(b"x" * (LOG_KEPT_BYTES + 1))
    with data_dir.open_log("kafka") as log:
        log.write(b"new\n\n")
    assert (data_dir.logs / "kafka.log").read_bytes() == b"new\n\n"
    assert (data_dir.logs / "kafka.log.1").stat().st_size == LOG_KEPT_BYTES + 1
    assert data_dir.complaint("kafka") == "new"
    data_dir.release()


def test_the_complaint_of_an_engine_is_its_last_fatal_line_of_this_start(tmp_path: Path) -> None:
    data_dir = DataDir(tmp_path)
    data_dir.hold(NOW)
    with data_dir.open_log("postgres") as log:
        log.write(b"FATAL: of an earlier start\n")
        began = log.tell()
        log.write(b"FATAL: no space left\nLOG: shut down\n")
    assert data_dir.complaint("postgres", began) == "FATAL: no space left"
    assert data_dir.complaint("temporal") == "no log"
    data_dir.release()
