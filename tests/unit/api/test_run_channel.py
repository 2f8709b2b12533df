"""What a run's channel may hand out, and when it must say that it does not know."""

from __future__ import annotations

from datetime import UTC, datetime

from schemas.runs import RunEvent
from services.events import run_channel
from services.events.run_channel import RunChannel, Watcher

AT = datetime(2026, 1, 1, tzinfo=UTC)


def events(first: int, last: int) -> list[RunEvent]:
    return [RunEvent(run_id="r", epoch=0, seq=seq, type="token", at=AT, data={}) for seq in range(first, last + 1)]


def seqs(found: list[RunEvent] | None) -> list[int] | None:
    return None if found is None else [event.seq for event in found]


def test_a_channel_knows_nothing_until_someone_has_read_the_run_to_its_end() -> None:
    channel = RunChannel("t", "r")
    channel.add(events(1, 3))
    assert channel.after(0) is None
    channel.start_at(3)
    channel.add(events(2, 5))
    assert seqs(channel.after(3)) == [4, 5]
    assert seqs(channel.after(5)) == []
    assert channel.after(2) is None


def test_a_channel_that_may_have_missed_something_says_so() -> None:
    channel = RunChannel("t", "r")
    channel.start_at(0)
    channel.add(events(1, 2))
    channel.forget()
    assert channel.after(1) is None


def test_a_watcher_too_far_back_for_what_is_kept_must_read() -> None:
    channel = RunChannel("t", "r")
    channel.start_at(0)
    slow, quick = Watcher(channel, 0), Watcher(channel, 0)
    channel.add(events(1, 5))
    assert seqs(quick.take()) == [1, 2, 3, 4, 5]
    channel.add(events(6, run_channel.KEPT + 5))
    assert slow.take() is None
    assert seqs(quick.take()) == list(range(6, run_channel.KEPT + 6))
    slow.caught_up(events(1, 500), to_the_newest=False)
    assert seqs(slow.take()) == list(range(501, run_channel.KEPT + 6))


async def test_a_wake_between_look_and_wait_is_not_lost() -> None:
    channel = RunChannel("t", "r")
    channel.start_at(0)
    watcher = Watcher(channel, 0)
    channel.watchers.add(watcher)
    assert watcher.take() == []
    channel.wake_all()
    assert await watcher.wait(30)


async def test_a_watcher_that_waited_in_vain_reads_for_itself() -> None:
    channel = RunChannel("t", "r")
    channel.start_at(0)
    watcher = Watcher(channel, 0)
    assert not await watcher.wait(0)
    watcher.distrust()
    assert watcher.take() is None
    watcher.caught_up([], to_the_newest=True)
    assert watcher.take() == []
