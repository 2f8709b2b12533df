"""Moments as a person counts them: how long ago, and in how long."""

from __future__ import annotations

from datetime import UTC, datetime

_STEPS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def counted(moment: datetime, now: datetime | None = None) -> str:
    """`3 min ago` or `in 6 d`; the clocks of two machines need not agree, so what is near is `just now`."""
    seconds = (moment - (now or datetime.now(UTC))).total_seconds()
    for size, unit in _STEPS:
        count = int(abs(seconds) / size + 0.05)
        if count >= (5 if size == 1 else 1):
            return f"in {count} {unit}" if seconds > 0 else f"{count} {unit} ago"
    return "just now"


def local(moment: datetime) -> str:
    """To the minute, in this machine's time."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")
