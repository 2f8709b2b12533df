"""Writes that come together share a commit; each is answered after it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from services.stores.group_commit import GroupCommit


class Ledger:
    """A writer whose commits can be held up and made to fail."""

    def __init__(self) -> None:
        self.pending: list[str] = []
        self.kept: list[str] = []
        self.commits: list[int] = []
        self.gate = threading.Event()
        self.gate.set()
        self.fail_next = False

    def add(self, word: str) -> int:
        self.pending.append(word)
        return len(self.kept)

    def commit(self) -> None:
        self.gate.wait(timeout=10)
        if self.fail_next:
            self.fail_next = False
            raise OSError("disk is full")
        self.commits.append(len(self.pending))
        self.kept += self.pending
        self.pending = []

    def rollback(self) -> None:
        self.pending = []


async def test_a_hundred_writers_that_come_together_share_a_few_commits_and_see_their_writes() -> None:
    ledger = Ledger()
    commits = GroupCommit(ledger)
    commits.start()

    async def write(number: int) -> None:
        await commits.write(lambda: ledger.add(f"w{number}"))
        assert f"w{number}" in ledger.kept

    await asyncio.gather(*(write(number) for number in range(100)))
    commits.stop()
    assert sorted(ledger.kept) == sorted(f"w{number}" for number in range(100))
    assert len(ledger.commits) < 50


async def test_writers_that_come_during_a_commit_share_the_next_one() -> None:
    ledger = Ledger()
    commits = GroupCommit(ledger, gather_s=0.0)
    ledger.gate.clear()
    commits.start()
    writes = [asyncio.ensure_future(commits.write(lambda: ledger.add("w"))) for _ in range(10)]
    await asyncio.sleep(0)
    ledger.gate.set()
    await asyncio.gather(*writes)
    commits.stop()
    assert sum(ledger.commits) == 10
    assert len(ledger.commits) <= 10


async def test_work_that_reads_sees_what_was_asked_before_it_in_the_same_commit() -> None:
    ledger = Ledger()
    commits = GroupCommit(ledger, gather_s=0.2, most=3)
    commits.start()
    first = commits.write(lambda: ledger.add("a"))
    second = commits.write(lambda: ledger.add("b"))
    third = commits.write(lambda: len(ledger.kept), reads=True)
    assert list(await asyncio.gather(first, second, third)) == [0, 0, 2]
    commits.stop()


async def test_a_failed_commit_fails_all_its_writers_keeps_nothing_and_the_next_one_works() -> None:
    ledger = Ledger()
    commits = GroupCommit(ledger, gather_s=0.2, most=2)
    ledger.fail_next = True
    commits.start()
    failed = await asyncio.gather(
        commits.write(lambda: ledger.add("a")), commits.write(lambda: ledger.add("b")), return_exceptions=True
    )
    assert [str(error) for error in failed] == ["disk is full"] * 2
    assert ledger.kept == []
    await asyncio.gather(commits.write(lambda: ledger.add("c")), commits.write(lambda: ledger.add("d")))
    assert ledger.kept == ["c", "d"]
    commits.stop()


async def test_work_that_raises_undoes_the_whole_commit() -> None:
    ledger = Ledger()
    commits = GroupCommit(ledger, gather_s=0.2, most=2)
    commits.start()

    def broken() -> None:
        raise ValueError("broken")

    one = commits.write(lambda: ledger.add("a"))
    results = await asyncio.gather(one, commits.write(broken), return_exceptions=True)
    assert all(isinstance(result, ValueError) for result in results)
    assert ledger.kept == []
    commits.stop()


async def test_stopping_waits_for_what_was_asked() -> None:
    ledger = Ledger()
    commits = GroupCommit(ledger)
    commits.start()
    write = asyncio.ensure_future(commits.write(lambda: ledger.add("a")))
    await asyncio.sleep(0)
    await asyncio.to_thread(commits.stop)
    await write
    assert ledger.kept == ["a"]


async def test_a_write_after_the_stop_is_refused_and_does_not_hang() -> None:
    ledger = Ledger()
    commits = GroupCommit(ledger)
    commits.start()
    commits.stop()
    with pytest.raises(RuntimeError, match="stopped"):
        await commits.write(lambda: ledger.add("late"))
