import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.local_stack.socket_dir import make_socket_dir, remove_socket_dir


@pytest.fixture
def short_place() -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(dir="/tmp"))
    yield place
    shutil.rmtree(place)


def test_a_place_too_long_for_107_bytes_is_passed_over(tmp_path: Path, short_place: Path) -> None:
    too_long = tmp_path / ("long" * 30)
    too_long.mkdir()
    directory = make_socket_dir(tmp_path / ("a" * 200), os.geteuid(), [too_long, short_place])
    assert directory.parent == short_place
    assert len(os.fsencode(directory / ".s.PGSQL.5432.lock")) <= 107


def test_a_data_dir_always_has_the_same_private_socket_dir(tmp_path: Path, short_place: Path) -> None:
    directory = make_socket_dir(tmp_path / "one", os.geteuid(), [short_place])
    assert directory.stat().st_mode & 0o777 == 0o700
    assert make_socket_dir(tmp_path / "one", os.geteuid(), [short_place]) == directory
    assert make_socket_dir(tmp_path / "two", os.geteuid(), [short_place]) != directory


def test_a_link_that_somebody_put_in_its_place_is_not_followed(tmp_path: Path, short_place: Path) -> None:
    directory = make_socket_dir(tmp_path / "data", os.geteuid(), [short_place])
    directory.rmdir()
    directory.symlink_to(tmp_path)
    with pytest.raises(OSError, match="XDG_RUNTIME_DIR"):
        make_socket_dir(tmp_path / "data", os.geteuid(), [short_place])


def test_removal_takes_the_sockets_along_and_spares_what_is_not_ours(tmp_path: Path, short_place: Path) -> None:
    directory = make_socket_dir(tmp_path / "data", os.geteuid(), [short_place])
    (directory / ".s.PGSQL.5432").touch()
    remove_socket_dir(directory)
    assert not directory.exists()
    directory.mkdir()
    (directory / "notes").touch()
    remove_socket_dir(directory)
    assert (directory / "notes").exists()
