"""How long to leave something alone that has just failed."""

from __future__ import annotations

FIRST_S, LONGEST_S = 0.2, 5.0


class Backoff:
    """Doubles from `first_s` to `longest_s` until it is reset."""

    def __init__(self, first_s: float = FIRST_S, longest_s: float = LONGEST_S) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._next_s = first_s

    def next_s(self) -> float:
        current = self._next_s
        self._next_s = min(current * 2, self._longest_s)
        return current

    def reset(self) -> None:
        self._next_s = self._first_s


class KeyedBackoff:
    """One Backoff per key. `now_s` is any clock that does not go backwards."""

    def __init__(self) -> None:
        self._waits: dict[str, tuple[Backoff, float]] = {}

    def postpone(self, key: str, now_s: float) -> None:
        backoff, _ = self._waits.get(key, (Backoff(), 0.0))
        self._waits[key] = (backoff, now_s + backoff.next_s())

    def waiting(self, now_s: float) -> list[str]:
        return [key for key, (_, until_s) in self._waits.items() if until_s > now_s]

    def next_due_s(self, now_s: float) -> float | None:
        """Seconds until the first key has waited enough; None when none waits."""
        ends = [until_s - now_s for _, until_s in self._waits.values() if until_s > now_s]
        return min(ends, default=None)

    def forget(self, key: str) -> None:
        self._waits.pop(key, None)
