from __future__ import annotations

from services.events.backoff import Backoff, KeyedBackoff


def test_waits_double_up_to_the_longest_and_begin_anew_after_a_success() -> None:
    backoff = Backoff(first_s=0.2, longest_s=1.0)
    assert [round(backoff.next_s(), 1) for _ in range(5)] == [0.2, 0.4, 0.8, 1.0, 1.0]
    backoff.reset()
    assert backoff.next_s() == 0.2


def test_a_postponed_key_waits_while_others_do_not() -> None:
    waits = KeyedBackoff()
    waits.postpone("a", now_s=10.0)
    assert waits.waiting(10.1) == ["a"]
    assert waits.waiting(10.3) == []
    waits.postpone("a", now_s=10.3)
    assert waits.waiting(10.6) == ["a"]
    assert waits.next_due_s(10.6) is not None
    waits.forget("a")
    assert waits.waiting(10.6) == []
    assert waits.next_due_s(10.6) is None
