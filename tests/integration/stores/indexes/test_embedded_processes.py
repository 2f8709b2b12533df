"""The embedded engines against the world of processes: killed at any moment, and opened twice."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from schemas.errors import EngineDown
from tests.integration.stores.indexes.chunks import chunk, chunk_id, scope
from tests.integration.stores.indexes.finding import find
from tests.integration.stores.indexes.writing_child import CHUNKS, embedded

ADAPTERS = pytest.mark.parametrize("adapter", ["qdrant_edge", "tantivy"])
ACKNOWLEDGED = 25


def start_child(adapter: str, directory: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.integration.stores.indexes.writing_child", adapter, str(directory)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def last_of(child: subprocess.Popen[str], lines: int) -> int:
    """The last number of so many lines that the child printed."""
    assert child.stdout is not None
    numbers = [int(child.stdout.readline()) for _ in range(lines)]
    return numbers[-1]


@ADAPTERS
async def test_what_was_acknowledged_survives_kill_9(adapter: str, tmp_path: Path) -> None:
    for _ in range(2):  # the second child starts on what the first one left
        child = start_child(adapter, tmp_path)
        try:
            last = last_of(child, ACKNOWLEDGED)
        finally:
            child.send_signal(signal.SIGKILL)
            child.communicate()
        index = embedded(adapter, tmp_path)
        await index.open()
        try:
            for number in range(last + 1):
                state = await index.document_state("a", f"d{number}")
                ids = {chunk_id(f"d{number} {part}") for part in range(CHUNKS)}
                expected = set() if number % 3 == 2 else ids
                assert set(state.ids) == expected, f"document {number}"
                assert state.access_versions == {0: (1,), 1: (2,), 2: ()}[number % 3], f"document {number}"
            seen = await find(index, scope(readers=["user:u"], documents=["d0", "d1"]))
            assert seen == {chunk_id(f"d1 {part}") for part in range(CHUNKS)}
        finally:
            await index.close()


@ADAPTERS
async def test_a_folder_held_by_another_process_is_refused_in_plain_words(adapter: str, tmp_path: Path) -> None:
    child = start_child(adapter, tmp_path)
    try:
        last_of(child, 1)
        index = embedded(adapter, tmp_path)
        with pytest.raises(EngineDown, match="is held by another process: stop that one, or set PERDURE_"):
            await index.open()
        await index.close()
    finally:
        child.kill()
        child.communicate()
    await index.open()
    assert await index.count_document("a", "d0") == CHUNKS
    await index.close()


@ADAPTERS
async def test_an_index_opened_again_holds_what_was_written_and_can_be_written_to(adapter: str, tmp_path: Path) -> None:
    for number in range(3):
        index = embedded(adapter, tmp_path)
        await index.open()
        await index.upsert([chunk(str(number))])
        assert await index.count_document("a", "d") == number + 1
        await index.close()


@ADAPTERS
async def test_a_closed_index_says_so(adapter: str, tmp_path: Path) -> None:
    index = embedded(adapter, tmp_path)
    await index.open()
    await index.close()
    await index.close()
    with pytest.raises(EngineDown, match="is not open"):
        await index.upsert([chunk("1")])
    with pytest.raises(EngineDown, match="is not open"):
        await index.ping()


async def test_a_shard_whose_making_was_cut_short_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "new" / "segments").mkdir(parents=True)
    index = embedded("qdrant_edge", tmp_path)
    await index.open()
    await index.upsert([chunk("1")])
    assert await find(index, scope()) == {chunk_id("1")}
    await index.close()


async def test_a_keyword_index_of_a_former_schema_is_dropped_and_started_empty(tmp_path: Path) -> None:
    (tmp_path / "v0").mkdir()
    (tmp_path / "v0" / "meta.json").write_text("{}")
    index = embedded("tantivy", tmp_path)
    await index.open()
    assert not (tmp_path / "v0").exists()
    assert await index.count_document("a", "d") == 0
    await index.close()
