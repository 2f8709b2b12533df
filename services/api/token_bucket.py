"""How often each caller may come: one bucket of tokens per name, kept by this process alone."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

NAMES_KEPT = 50_000


class TokenBuckets:
    """Each name may take `per_minute` at once and gets them back evenly over a minute."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> float:
        """0 when the name may go on, else the seconds until it may."""
        now = self._clock()
        tokens, at = self._buckets.pop(name, (float(self._per_minute), now))
        tokens = min(float(self._per_minute), tokens + (now - at) * self._per_minute / 60)
        allowed = tokens >= 1
        self._buckets[name] = (tokens - 1 if allowed else tokens, now)
        if len(self._buckets) > NAMES_KEPT:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - tokens) * 60 / self._per_minute
