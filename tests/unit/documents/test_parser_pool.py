"""The pool's children really die, and say why."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from schemas.errors import PermanentFailure, TransientFailure
from schemas.settings import ParsingSettings
from services.documents.parser_pool import ParserPool
from services.gateways.python_child import python_environment


@contextlib.asynccontextmanager
async def _running(limits: ParsingSettings, files_per_child: int = 500) -> AsyncIterator[ParserPool]:
    pool = ParserPool(limits, files_per_child)
    await pool.start()
    try:
        yield pool
    finally:
        await pool.stop()


def _write(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def _slow_file(folder: Path) -> Path:
    """Valid JSON that keeps a parser busy for many seconds."""
    record = b'{"a": [' + b"[1]," * 200_000 + b"[1]]}"
    return _write(folder, "slow.json", b"[" + b",".join([record] * 40) + b"]")


def _is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return True
    return state == "Z"


async def _until_busy(pool: ParserPool) -> None:
    while not pool.busy_pids:
        await asyncio.sleep(0.01)


async def test_files_are_parsed_side_by_side_by_children_that_stay(tmp_path: Path) -> None:
    async with _running(ParsingSettings(workers=2)) as pool:
        before = set(pool.child_pids)
        files = [_write(tmp_path, f"{number}.md", f"# Title {number}".encode()) for number in range(8)]
        parsed = await asyncio.gather(*(pool.parse(file, file.name, None, tmp_path, 0) for file in files))
        assert [document.title for document in parsed] == [f"Title {number}" for number in range(8)]
        assert set(pool.child_pids) == before
    assert all(_is_gone(pid) for pid in before)


async def test_a_failure_of_the_file_crosses_with_its_code_and_keeps_the_child(tmp_path: Path) -> None:
    async with _running(ParsingSettings(workers=1)) as pool:
        before = pool.child_pids
        with pytest.raises(PermanentFailure) as failure:
            await pool.parse(_write(tmp_path, "a.txt", b"  \n"), "a.txt", None, tmp_path, 0)
        assert failure.value.code == "no_text"
        assert pool.child_pids == before


async def test_a_file_that_takes_too_long_is_stopped_by_the_clock_and_the_pool_goes_on(tmp_path: Path) -> None:
    async with _running(ParsingSettings(workers=1, wall_s=0.5)) as pool:
        (before,) = pool.child_pids
        with pytest.raises(PermanentFailure) as failure:
            await pool.parse(_slow_file(tmp_path), "slow.json", None, tmp_path, 0)
        assert failure.value.code == "timeout"
        assert "PERDURE_PARSING__WALL_S" in failure.value.detail
        document = await pool.parse(_write(tmp_path, "a.txt", b"text"), "a.txt", None, tmp_path, 0)
        assert Path(document.text_file).read_text() == "text"
        assert _is_gone(before)


async def test_processor_time_is_bounded_for_each_file(tmp_path: Path) -> None:
    async with _running(ParsingSettings(workers=1, cpu_s=1)) as pool:
        with pytest.raises(PermanentFailure) as failure:
            await pool.parse(_slow_file(tmp_path), "slow.json", None, tmp_path, 0)
        assert failure.value.code == "timeout"
        assert "PERDURE_PARSING__CPU_S" in failure.value.detail


async def test_memory_is_bounded(tmp_path: Path) -> None:
    async with _running(ParsingSettings(workers=1, memory_mb=128)) as pool:
        with pytest.raises(PermanentFailure) as failure:
            await pool.parse(_slow_file(tmp_path), "slow.json", None, tmp_path, 0)
        assert failure.value.code == "memory"
        assert "PERDURE_PARSING__MEMORY_MB" in failure.value.detail


async def test_a_child_killed_from_outside_is_no_fault_of_the_file(tmp_path: Path) -> None:
    async with _running(ParsingSettings(workers=1)) as pool:
        work = asyncio.create_task(pool.parse(_slow_file(tmp_path), "slow.json", None, tmp_path, 0))
        await _until_busy(pool)
        os.kill(pool.busy_pids[0], signal.SIGKILL)
        with pytest.raises(TransientFailure):
            await work


@pytest.mark.parametrize("crash", [signal.SIGSEGV, signal.SIGABRT])
async def test_a_crash_is_the_fault_of_the_file(tmp_path: Path, crash: signal.Signals) -> None:
    async with _running(ParsingSettings(workers=1)) as pool:
        work = asyncio.create_task(pool.parse(_slow_file(tmp_path), "slow.json", None, tmp_path, 0))
        await _until_busy(pool)
        os.kill(pool.busy_pids[0], crash)
        with pytest.raises(PermanentFailure) as failure:
            await work
        assert failure.value.code == "corrupt"
        assert crash.name in failure.value.detail


async def test_cancelling_kills_the_child(tmp_path: Path) -> None:
    async with _running(ParsingSettings(workers=1)) as pool:
        work = asyncio.create_task(pool.parse(_slow_file(tmp_path), "slow.json", None, tmp_path, 0))
        await _until_busy(pool)
        (pid,) = pool.busy_pids
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        document = await pool.parse(_write(tmp_path, "a.txt", b"text"), "a.txt", None, tmp_path, 0)
        assert Path(document.text_file).read_text() == "text"
        assert _is_gone(pid)


async def test_an_idle_child_that_died_is_replaced_unseen(tmp_path: Path) -> None:
    async with _running(ParsingSettings(workers=1)) as pool:
        (pid,) = pool.child_pids
        os.kill(pid, signal.SIGKILL)
        while not _is_gone(pid):
            await asyncio.sleep(0.01)
        document = await pool.parse(_write(tmp_path, "a.txt", b"text"), "a.txt", None, tmp_path, 0)
        assert Path(document.text_file).read_text() == "text"


async def test_a_child_is_replaced_after_its_share_of_files(tmp_path: Path) -> None:
    async with _running(ParsingSettings(workers=1), files_per_child=2) as pool:
        (first,) = pool.child_pids
        for _ in range(3):
            await pool.parse(_write(tmp_path, "a.txt", b"text"), "a.txt", None, tmp_path, 0)
        assert first not in pool.child_pids


async def test_children_have_no_network_no_settings_and_step_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_DATABASE_URL", "postgresql://secret")
    async with _running(ParsingSettings(workers=1, niceness=7)) as pool:
        (pid,) = pool.child_pids
        assert b"secret" not in Path(f"/proc/{pid}/environ").read_bytes()
        assert os.getpriority(os.PRIO_PROCESS, pid) == os.getpriority(os.PRIO_PROCESS, 0) + 7
        if os.geteuid() == 0:
            assert Path(f"/proc/{pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink()


async def test_members_cross_as_files_in_the_scratch_folder(tmp_path: Path) -> None:
    mail = (
        b"From: a@b\nSubject: s\nContent-Type: application/pdf; name=x.pdf\nContent-Disposition: attachment\n\n%PDF-1.4"
    )
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    async with _running(ParsingSettings(workers=1)) as pool:
        document = await pool.parse(_write(tmp_path, "m.eml", mail), "m.eml", None, scratch, 0)
    (member,) = document.members
    assert Path(member.file).parent == scratch
    assert Path(member.file).read_bytes() == b"%PDF-1.4"


_PARENT = """
import asyncio, sys
from schemas.settings import ParsingSettings
from services.documents.parser_pool import ParserPool
async def main():
    pool = ParserPool(ParsingSettings(workers=1))
    await pool.start()
    print(pool.child_pids[0], flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


async def test_children_die_with_their_parent_however_it_dies() -> None:
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _PARENT, env=python_environment(), stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    pid = int(await parent.stdout.readline())
    assert not _is_gone(pid)
    parent.kill()
    await parent.wait()
    async with asyncio.timeout(10):
        while not _is_gone(pid):
            await asyncio.sleep(0.02)
