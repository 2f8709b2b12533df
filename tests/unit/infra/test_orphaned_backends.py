import subprocess
from pathlib import Path

import pytest

from infra.local_stack.orphaned_backends import PidFile, clear
from schemas.errors import EngineDown

WHOLE = "4711\n/proc/self/cwd\n1796086833\n5432\n/tmp/perdure\n\n  8826964     65536\nready\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (WHOLE, PidFile(4711, "65536")),
        ("4711\n/proc/self/cwd\n", PidFile(4711, None)),
        ("", PidFile(None, None)),
        ("garbage\n" * 8, PidFile(None, "garbage")),
    ],
)
def test_a_pid_file_is_read_whole_half_written_or_damaged(text: str, expected: PidFile) -> None:
    assert PidFile.parse(text) == expected


async def test_the_pid_file_of_a_dead_server_is_removed(tmp_path: Path) -> None:
    (tmp_path / "postmaster.pid").write_text(WHOLE.replace("4711", "4194400"))  # above the highest pid there can be
    await clear(tmp_path)
    assert not (tmp_path / "postmaster.pid").exists()


async def test_a_pid_that_now_belongs_to_a_stranger_does_not_count_as_a_server(tmp_path: Path) -> None:
    (tmp_path / "postmaster.pid").write_text(WHOLE.replace("4711", "1"))
    await clear(tmp_path)
    assert not (tmp_path / "postmaster.pid").exists()


async def test_a_server_that_somebody_else_runs_on_the_directory_is_left_alone(tmp_path: Path) -> None:
    stranger = subprocess.Popen(["sleep", "60"], cwd=tmp_path)
    (tmp_path / "postmaster.pid").write_text(WHOLE.replace("4711", str(stranger.pid)))
    with pytest.raises(EngineDown, match="not ours"):
        await clear(tmp_path)
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()
